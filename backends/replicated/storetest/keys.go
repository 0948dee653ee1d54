package storetest

import (
	"crypto/rand"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

var keyPromises = []promise{
	{"KeysNeverMeet", "keys are any non-empty text up to 1,200 bytes, and no two of them meet", func(s *subject) {
		rapid.Check(&propertyReporter{reporter: s.reporter, name: s.promise.name}, func(t *rapid.T) {
			s := *s
			s.reporter = t
			s.keysNeverMeet(drawKeys(t))
		})
	}},
	{"OddKeys", "a store encodes keys so that no two of them meet", func(s *subject) {
		base := key()
		keys := []string{base}
		for _, odd := range oddities {
			keys = append(keys, base+odd, odd+base)
		}
		s.keysNeverMeet(keys)
	}},
	{"LongestKeys", "keys have up to 1,200 bytes, and differ even if they differ in the last one only, or in length", func(s *subject) {
		long := pad(key(), "")
		s.keysNeverMeet([]string{long, long[:len(long)-1] + "-", long[:len(long)-1], "-" + long[1:], long[:300]})
	}},
}

// keysNeverMeet gives each key a record, and changes one at a time.
func (s *subject) keysNeverMeet(keys []string) {
	s.Helper()
	records := make(map[string]replicated.Entry)
	for n, k := range keys {
		records[k] = s.create(s.gateway, k, fmt.Sprint("record ", n))
	}
	for n, k := range keys {
		s.reads(s.gateway, k, records[k])
		records[k] = s.apply(s.gateway, replicated.Swap{Key: k, Expect: records[k].Revision, Value: fmt.Append(nil, "change ", n)})
	}
	for _, k := range keys {
		s.reads(s.gateway, k, records[k])
	}
}

// oddities are what encodings of keys stumble over.
var oddities = []string{
	" ", "  ", "\t", "\n", "\r\n", "\x00", "\x01", "\x7f", "\u0085", "\u200b", "\ufeff",
	"%", "%%", "%2", "%20", "%2F", "%252F", "+", "/", "//", "\\", ".", "..", "...", "/.", "/..", "/x/..", "~",
	"*", ">", "*.>", "$", "$KV", ":", ";", ",", "|", "#", "?", "&", "=", "==", "'", "\"", "`", "{", "}", "[", "]", "<", "^", "@", "!",
	"-", "_", "__", "0", "00", "01", "1", "a", "A", "z", "Z", "é", "e\u0301", "\u00c5", "\u212b", "ſ", "ß", "ss", "İ", "ı",
	"🔒", "👩‍🚀", "\U0010ffff", "\uffff", "\ufffd", "漢", "עב", "\u202e",
}

// drawKeys draws a few different keys that are like one another, and that no
// test has used.
func drawKeys(t *rapid.T) []string {
	odd := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(oddities), 0, 5).Draw(t, "pieces"), "")
	})
	anything := rapid.OneOf(odd, odd, rapid.StringN(-1, -1, 200))
	texts := []string{anything.Draw(t, "text")}
	for range rapid.IntRange(1, 4).Draw(t, "more") {
		like := rapid.SampledFrom(texts).Draw(t, "like")
		texts = append(texts, rapid.SampledFrom([]func() string{
			func() string { return anything.Draw(t, "text") },
			func() string { return like + anything.Draw(t, "suffix") },
			func() string { return like + rapid.SampledFrom(oddities).Draw(t, "suffix") },
			func() string { return anything.Draw(t, "prefix") + like },
			func() string { return strings.ToUpper(like) },
			func() string { return strings.ToLower(like) },
			func() string { return strings.TrimSpace(like) },
			func() string { return like[:0] },
		}).Draw(t, "how")())
	}
	tag := rand.Text()
	shape := rapid.SampledFrom([]func(string) string{
		func(x string) string { return tag + x },
		func(x string) string { return x + tag },
		func(x string) string { return pad(tag, x) },
		func(x string) string { return pad(x, tag) },
	}).Draw(t, "shape")
	var keys []string
	seen := make(map[string]bool)
	for _, x := range texts {
		if k := shape(x); !seen[k] && len(k) <= replicated.MaxKeyLength {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

// pad returns a key of the greatest length that begins and ends so.
func pad(begin, end string) string {
	return begin + strings.Repeat("x", max(0, replicated.MaxKeyLength-len(begin)-len(end))) + end
}

// propertyReporter lets rapid report to a reporter. It has what rapid.Check
// calls; the other methods are there but must not be called.
type propertyReporter struct {
	rapid.TB
	reporter
	name    string
	failure string
}

func (r *propertyReporter) Helper()                   { r.reporter.Helper() }
func (r *propertyReporter) Name() string              { return r.name }
func (r *propertyReporter) Logf(f string, a ...any)   { r.reporter.Logf(f, a...) }
func (r *propertyReporter) Log(a ...any)              { r.reporter.Logf("%s", fmt.Sprint(a...)) }
func (r *propertyReporter) Errorf(f string, a ...any) { r.failure += fmt.Sprintf(f, a...) }
func (r *propertyReporter) Failed() bool              { return r.failure != "" }
func (r *propertyReporter) FailNow()                  { r.reporter.Fatalf("%s", r.failure) }
func (r *propertyReporter) Fatalf(f string, a ...any) { r.reporter.Fatalf(f, a...) }
