package replicated

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// A record is stored as two magic bytes, a version, flags, and then its fields
// in order: numbers as uvarints (encoding/binary), session ids and random
// numbers as 8 bytes, texts and lists with their length before them. At the
// end there are extensions, each a tag and bytes. A version that adds something
// which older gateways may ignore gives it an even tag: they carry it along. An
// odd tag must be understood. A version that changes anything else raises the
// version byte. What a gateway cannot read it neither serves nor overwrites.
const (
	magic0, magic1 = 'L', 'G'
	version        = 1

	flagFresh = 1 << 0
	flagName  = 1 << 1
	knownFlag = flagFresh | flagName
)

var (
	errForeign = errors.New("the value is not a lock record")
	errNewer   = errors.New("the record was written by a newer version of Lock Gateway; upgrade this one")
)

// encode returns the record as the store keeps it.
func (r *record) encode() []byte {
	b := make([]byte, 0, min(r.size(), 2*maxRecordSize)) // size counts more than there is
	flags := byte(0)
	if r.fresh {
		flags |= flagFresh
	}
	if r.name != "" {
		flags |= flagName
	}
	b = append(b, magic0, magic1, version, flags)
	if r.name != "" {
		b = appendText(b, r.name)
	}
	b = binary.BigEndian.AppendUint64(b, r.created)
	b = binary.AppendUvarint(b, r.resets)
	b = binary.AppendUvarint(b, r.eras)
	b = binary.AppendUvarint(b, uint64(r.anonymous))
	b = binary.AppendUvarint(b, uint64(r.busySince))
	b = binary.AppendUvarint(b, uint64(len(r.holders)))
	for i := range r.holders {
		b = r.holders[i].append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(r.queue)))
	for i := range r.queue {
		b = r.queue[i].append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(r.batches)))
	for _, x := range r.batches {
		b = binary.BigEndian.AppendUint64(b, uint64(x.session))
		b = binary.AppendUvarint(b, x.number<<1|one(x.pruned))
	}
	b = binary.AppendUvarint(b, uint64(len(r.extra)))
	for _, e := range r.extra {
		b = binary.AppendUvarint(b, e.tag)
		b = appendText(b, string(e.value))
	}
	return b
}

// append writes the holder. A token of 0 means that index counts from the
// revision of this very record.
func (h *holder) append(b []byte) []byte {
	b = appendText(b, h.name)
	b = binary.BigEndian.AppendUint64(b, h.grant)
	b = binary.AppendUvarint(b, h.token)
	if h.token == 0 {
		b = binary.AppendUvarint(b, h.index)
	}
	b = binary.AppendUvarint(b, h.answers)
	b = binary.AppendUvarint(b, uint64(h.since))
	b = binary.AppendUvarint(b, h.expiring)
	if h.expiring != 0 {
		b = binary.AppendUvarint(b, uint64(h.ttl.Milliseconds()))
	}
	return appendSessions(b, h.waits)
}

// append writes the ticket. A run of 0 is a named place.
func (t *ticket) append(b []byte) []byte {
	b = binary.AppendUvarint(b, t.run)
	b = binary.AppendUvarint(b, uint64(t.since))
	if !t.named() {
		b = binary.BigEndian.AppendUint64(b, uint64(t.session))
		return binary.AppendUvarint(b, uint64(t.count))
	}
	b = append(b, t.hash[:]...)
	b = binary.AppendUvarint(b, uint64(t.nameLength))
	return appendSessions(b, t.waits)
}

func one(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendSessions(b []byte, list []SessionID) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = binary.BigEndian.AppendUint64(b, uint64(s))
	}
	return b
}

// decode reads a record that the store has at the given revision. The error is
// errNewer for one of a newer version, else errForeign with what is wrong.
func decode(b []byte, revision uint64) (*record, error) {
	if len(b) < 4 || b[0] != magic0 || b[1] != magic1 {
		return nil, errForeign
	}
	if b[2] > version || b[3]&^knownFlag != 0 {
		return nil, errNewer
	}
	if b[2] == 0 {
		return nil, fmt.Errorf("%w: version 0", errForeign)
	}
	d := decoder{rest: b[4:]}
	r := &record{fresh: b[3]&flagFresh != 0}
	if b[3]&flagName != 0 {
		r.name = d.text()
	}
	r.created = d.fixed()
	r.resets = d.number()
	r.eras = d.number()
	r.anonymous = d.count()
	r.busySince = d.time()
	for range d.length(13) {
		r.holders = append(r.holders, d.holder())
	}
	for range d.length(11) {
		r.queue = append(r.queue, d.ticket())
	}
	for range d.length(9) {
		b := batch{session: SessionID(d.fixed())}
		number := d.number()
		b.number, b.pruned = number>>1, number&1 == 1
		r.batches = append(r.batches, b)
	}
	for range d.length(2) {
		e := extension{tag: d.number(), value: []byte(d.text())}
		if e.tag%2 == 1 && d.err == nil {
			return nil, errNewer
		}
		r.extra = append(r.extra, e)
	}
	if d.err == nil && len(d.rest) > 0 {
		d.fail("bytes after the end")
	}
	if d.err != nil {
		return nil, d.err
	}
	r.resolve(revision)
	return r, r.check()
}

// check refuses a record that no gateway writes.
func (r *record) check() error {
	names := make(map[string]bool, len(r.holders))
	for i := range r.holders {
		h := &r.holders[i]
		if h.name == "" || names[h.name] || h.answers == 0 {
			return fmt.Errorf("%w: a holder without a name or an answer, or twice", errForeign)
		}
		names[h.name] = true
	}
	hashes := make(map[nameHash]bool)
	for i := range r.queue {
		t := &r.queue[i]
		if t.named() && (hashes[t.hash] || len(t.waits) == 0) || !t.named() && t.count == 0 {
			return fmt.Errorf("%w: an empty ticket, or one that is there twice", errForeign)
		}
		if t.named() {
			hashes[t.hash] = true
		}
	}
	return nil
}

// decoder reads fields off a value. After the first error it returns zeros.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", errForeign, what)
		d.rest = nil
	}
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail("a number is cut off or too large")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) count() int64 {
	v := d.number()
	if v > math.MaxInt64/2 {
		d.fail("a count is too large")
		return 0
	}
	return int64(v)
}

func (d *decoder) time() int64 {
	v := d.number()
	if v > latestTime {
		d.fail("a time is too late")
		return 0
	}
	return int64(v)
}

// length reads the length of a list whose elements take at least size bytes.
func (d *decoder) length(size int) int {
	v := d.number()
	if v > uint64(len(d.rest)/size) {
		d.fail("a list is longer than the value")
		return 0
	}
	return int(v)
}

func (d *decoder) fixed() uint64 {
	if len(d.rest) < 8 {
		d.fail("the value is cut off")
		return 0
	}
	v := binary.BigEndian.Uint64(d.rest)
	d.rest = d.rest[8:]
	return v
}

func (d *decoder) text() string {
	n := d.length(1)
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) sessions() []SessionID {
	var list []SessionID
	for range d.length(8) {
		list = append(list, SessionID(d.fixed()))
	}
	return list
}

func (d *decoder) holder() holder {
	h := holder{name: d.text(), grant: d.fixed(), token: d.number()}
	if h.token == 0 {
		if h.index = d.number(); h.index >= grantsPerRevision {
			d.fail("a revision has fewer grants")
		}
	}
	h.answers = d.number()
	h.since = d.time()
	if h.expiring = d.number(); h.expiring != 0 {
		h.ttl = time.Duration(min(d.count(), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
	h.waits = d.sessions()
	return h
}

func (d *decoder) ticket() ticket {
	t := ticket{run: d.number(), since: d.time()}
	if !t.named() {
		t.session = SessionID(d.fixed())
		t.count = d.count()
		return t
	}
	if len(d.rest) < len(t.hash) {
		d.fail("the value is cut off")
		return t
	}
	d.rest = d.rest[copy(t.hash[:], d.rest):]
	n := d.count()
	if n > maxRecordSize {
		d.fail("a name is longer than a record may be")
	}
	t.nameLength = int(n)
	t.waits = d.sessions()
	return t
}
