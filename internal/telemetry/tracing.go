package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Recording reports whether a span of the context is recorded: what describes
// further ones need not be made up otherwise.
func Recording(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// Start starts a span below the one of the context, by whoever provides that:
// Caddy's tracing directive sets no global provider. Where none is recorded it
// starts nothing, and the span that it returns does nothing.
func Start(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, noop.Span{}
	}
	return parent.TracerProvider().Tracer(Name).Start(ctx, name, trace.WithAttributes(attributes...)) //nolint:spancheck // The caller ends it.
}

// Link links a span to the one of the context, if there is any.
func Link(span trace.Span, to trace.SpanContext) {
	if to.IsValid() {
		span.AddLink(trace.Link{SpanContext: to})
	}
}
