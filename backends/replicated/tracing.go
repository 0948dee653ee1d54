package replicated

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/lockgateway/lockgateway/internal/telemetry"
)

// traced is what a request has besides if its caller's span is recorded: a span for
// the phase that it is in. The committer's mutex guards it.
type traced struct {
	ctx   context.Context // the caller's, for its span
	phase trace.Span      // lock.enqueue, and then lock.wait
}

// traceRequest begins to trace a request, if its caller is traced.
func traceRequest(ctx context.Context, r *request) {
	if !telemetry.Recording(ctx) {
		return
	}
	t := &traced{ctx: ctx, phase: noop.Span{}}
	if r.kind == acquireRequest {
		_, t.phase = telemetry.Start(ctx, "lock.enqueue")
		r.placed = func(position int64) {
			t.phase.End()
			_, t.phase = telemetry.Start(ctx, "lock.wait", attribute.Int64("lock.queue.position", position))
		}
	}
	r.traced = t
}

// spanContext is that of the caller's span.
func (t *traced) spanContext() trace.SpanContext { return trace.SpanContextFromContext(t.ctx) }

// startSwap starts the span of an attempt of a swap, below that of the first traced
// request in it, and linked to the others'.
func (c *committer) startSwap(f *flight) trace.Span {
	var span trace.Span = noop.Span{}
	for _, o := range f.outcomes {
		t := o.request.traced
		switch {
		case t == nil:
		case span.IsRecording():
			telemetry.Link(span, t.spanContext())
		default:
			_, span = telemetry.Start(t.ctx, "lock.swap",
				attribute.Int("lock.batch.size", len(f.outcomes)), attribute.Bool("lock.in_doubt", f.doubt))
		}
	}
	return span
}

// endSwap ends it, and counts the attempt. What was granted by a release in the same
// swap is linked to it.
func (c *committer) endSwap(span trace.Span, f *flight, outcome string, took time.Duration, first bool) {
	c.b.meters.attempted(c.b.ctx, outcome, took, first, len(f.outcomes))
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String("outcome", outcome))
	if outcome == swapFailed || outcome == swapUnknown {
		span.SetStatus(codes.Error, outcome)
	}
	span.End()
	if outcome == swapApplied && !f.blocking {
		f.linkGrants()
	}
}

func (f *flight) linkGrants() {
	var release trace.SpanContext
	for _, o := range f.outcomes {
		if t := o.request.traced; t != nil && o.request.kind == releaseRequest && o.answer.released {
			release = t.spanContext()
		}
	}
	for _, o := range f.outcomes {
		if t := o.request.traced; t != nil && o.answer.acquired.Acquired && !o.answer.repeat {
			telemetry.Link(t.phase, release)
		}
	}
}
