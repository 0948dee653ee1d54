package etcd

import (
	"testing"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
)

func TestCallsCarryTheTrace(t *testing.T) {
	t.Parallel()
	of := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	sent, _ := metadata.FromOutgoingContext(withTrace(trace.ContextWithSpanContext(t.Context(), of)))
	const want = "00-01000000000000000000000000000000-0200000000000000-01"
	if got := sent.Get("traceparent"); len(got) != 1 || got[0] != want {
		t.Errorf("the call carries %v; want %s", got, want)
	}
	if sent, ok := metadata.FromOutgoingContext(withTrace(t.Context())); ok {
		t.Errorf("without a trace the call carries %v; want nothing", sent)
	}
}
