package lock

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// MaxIDLength is the greatest length of a lock id, and of a holder's name, in
// Unicode code points.
const MaxIDLength = 256

// Key is the identity of a lock: the pair of its maximum number of holders and
// its id. Keys are comparable; two spellings of one identity are equal. The
// zero Key identifies nothing; make keys with [NewKey] or [ParseKey].
//
// An id is a capability: who knows it can release the lock. So a Key does not
// print itself: its String method leaves the id out, and only [Key.Name] and
// [Key.ID] reveal it.
type Key struct {
	name string // canonical: decimal digits without leading zeros, a slash, the id
	max  int64  // the digits, or math.MaxInt64 when they say more
}

// NewKey returns the key of a maximum, given in decimal digits, and an id.
// See [ParseKey] for what is allowed.
func NewKey(maxValue, id string) (Key, error) {
	if strings.Contains(maxValue, "/") {
		return Key{}, errMaxValue(maxValue)
	}
	return ParseKey(maxValue + "/" + id)
}

// ParseKey returns the key written as "maxValue/id", with nothing escaped.
//
// maxValue is a positive decimal integer without bound; leading zeros do not
// make another key. The id is 1 to [MaxIDLength] code points of valid UTF-8
// without a slash; nothing about it is normalised. The error names the part at
// fault. It allocates nothing for a canonical name, of which the key keeps a
// reference.
func ParseKey(name string) (Key, error) {
	maxValue, id, ok := strings.Cut(name, "/")
	if !ok {
		return Key{}, errors.New("a key is written maxValue/lockId; there is no slash")
	}
	digits, limit, err := parseMax(maxValue)
	if err != nil {
		return Key{}, err
	}
	if err := checkText("lockId", id); err != nil {
		return Key{}, err
	}
	if strings.Contains(id, "/") {
		return Key{}, errors.New("lockId contains a slash")
	}
	return Key{name: name[len(maxValue)-len(digits):], max: limit}, nil
}

// CheckHolder reports why name cannot name a holder: it must be 1 to
// [MaxIDLength] code points of valid UTF-8.
func CheckHolder(name string) error { return checkText("the name", name) }

// Max returns how many holders the lock can have. A maximum beyond
// math.MaxInt64 is returned as that: no count gets there, so comparing with it
// gives the right answer.
func (k Key) Max() int64 { return k.max }

// MaxValue returns the maximum in decimal digits without leading zeros. Unlike
// Max it tells all maxima apart.
func (k Key) MaxValue() string { return k.name[:k.slash()] }

// ID returns the lock's id.
func (k Key) ID() string { return k.name[k.slash()+1:] }

// Name returns the key as "maxValue/id", the canonical spelling that ParseKey
// accepts. Different keys have different names.
func (k Key) Name() string { return k.name }

// String describes the key without its id, which is a secret.
func (k Key) String() string {
	if k.name == "" {
		return "(no lock)"
	}
	return k.MaxValue() + "/(id withheld)"
}

// GoString is String: %#v must not reveal the id either.
func (k Key) GoString() string { return k.String() }

func (k Key) slash() int { return strings.IndexByte(k.name, '/') }

// parseMax returns the digits without leading zeros, and their value saturated
// at math.MaxInt64.
func parseMax(s string) (digits string, limit int64, err error) {
	if s == "" {
		return "", 0, errMaxValue(s)
	}
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return "", 0, errMaxValue(s)
		}
		d := int64(c - '0')
		if limit > (math.MaxInt64-d)/10 {
			limit = math.MaxInt64
		} else {
			limit = limit*10 + d
		}
	}
	digits = strings.TrimLeft(s, "0")
	if digits == "" {
		return "", 0, errMaxValue(s)
	}
	return digits, limit, nil
}

func errMaxValue(s string) error {
	return fmt.Errorf("maxValue %s is not a positive integer in decimal digits", quote(s))
}

func checkText(what, s string) error {
	if s == "" {
		return fmt.Errorf("%s is empty", what)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not valid UTF-8", what)
	}
	// A code point has at least one byte, so short strings need no count.
	if len(s) > MaxIDLength {
		if n := utf8.RuneCountInString(s); n > MaxIDLength {
			return fmt.Errorf("%s has %d characters; at most %d are allowed", what, n, MaxIDLength)
		}
	}
	return nil
}

// quote quotes a value for an error text, shortened so that an answer does not
// grow with the request.
func quote(s string) string {
	const most = 40
	if len(s) > most {
		return fmt.Sprintf("%q…", s[:most])
	}
	return fmt.Sprintf("%q", s)
}
