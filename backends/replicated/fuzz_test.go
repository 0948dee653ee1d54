package replicated

import (
	"errors"
	"reflect"
	"testing"
)

// FuzzDecode decodes anything, and what it understands, again.
func FuzzDecode(f *testing.F) {
	for _, row := range golden {
		f.Add(goldenBytes(f, row.bytes))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decode(b, goldenRevision)
		if err != nil {
			if r != nil && !errors.Is(err, errForeign) || errors.Is(err, errForeign) == errors.Is(err, errNewer) {
				t.Fatalf("%+v, %v", r, err)
			}
			return
		}
		again, err := decode(r.encode(), goldenRevision)
		if err != nil {
			t.Fatalf("%+v is refused after it was encoded: %v", *r, err)
		}
		if !reflect.DeepEqual(r, again) && !equalRecords(r, again) {
			t.Fatalf("%+v came back as %+v", *r, *again)
		}
		r.clone().reset()
	})
}
