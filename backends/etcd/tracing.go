package etcd

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
)

// withTrace tells etcd which trace a call is part of, in the way that its own
// distributed tracing understands: W3C Trace Context, in gRPC's metadata.
func withTrace(ctx context.Context) context.Context {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	fields := make(propagation.MapCarrier)
	propagation.TraceContext{}.Inject(ctx, fields)
	var pairs []string
	for name, value := range fields {
		pairs = append(pairs, name, value)
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}
