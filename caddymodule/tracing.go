package caddymodule

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/lockgateway/lockgateway/internal/lockhttp"
	"github.com/lockgateway/lockgateway/internal/telemetry"
)

// startSpan starts the span of an operation below that of Caddy's tracing
// directive. Where there is none it costs a look.
func (h *Handler) startSpan(ctx context.Context, req lockhttp.Request) (context.Context, trace.Span) {
	if !telemetry.Recording(ctx) {
		return ctx, noop.Span{}
	}
	action := actionNames[req.Action]
	return telemetry.Start(ctx, "lock."+action,
		attribute.String(telemetry.BackendKey, h.instance.module),
		attribute.String("action", action),
		attribute.String("lock", h.hashOf(req.Key)),
		attribute.Int64("lock.max", req.Key.Max()),
		attribute.Bool("lock.named", req.Holder != ""),
	)
}

// endSpan ends it. What the client got a 503 or 504 for is an error.
func endSpan(span trace.Span, o outcome) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String("outcome", outcomeNames[o]))
	if o >= limited { // and what comes after it
		span.SetStatus(codes.Error, outcomeNames[o])
	}
	span.End()
}
