package caddymodule

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// readQuery reads the parameters that the request's action knows. Names are
// case-insensitive; of a parameter given twice the first counts, except that
// two holders are an error; all others are ignored.
func (req *request) readQuery(query string) error {
	var sawWait, sawHolder, sawTTL, sawDetail bool
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		encodedName, encoded, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(encodedName)
		if err != nil {
			continue
		}
		text, err := url.QueryUnescape(encoded)
		switch {
		case req.action == acquire && isNamed(name, "waitTimeoutMs"):
			if !sawWait {
				sawWait = true
				if err == nil {
					req.wait, err = parseWait(text)
				}
			}
		case (req.action == acquire || req.action == release) && isNamed(name, "holder"):
			if err == nil {
				err = lock.CheckHolder(text)
			}
			if err == nil && sawHolder && text != req.holder {
				err = errors.New("two different values are given")
			}
			sawHolder = true
			req.holder = text
		case req.action == acquire && isNamed(name, "ttlMs"):
			if !sawTTL {
				sawTTL = true
				if err == nil {
					req.ttl, err = parseTTL(text)
				}
			}
		case req.action == value && isNamed(name, "detail"):
			if !sawDetail {
				sawDetail = true
				if err == nil {
					req.detail, err = parseDetail(text)
				}
			}
		default:
			continue
		}
		if err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	if sawTTL && !sawHolder {
		return errors.New("parameter ttlMs needs a holder, whose slot it ends")
	}
	return nil
}

// isNamed compares ASCII names without regard to case. Equal lengths keep out
// the few other characters that fold to ASCII letters.
func isNamed(name, want string) bool {
	return len(name) == len(want) && strings.EqualFold(name, want)
}

// parseWait reads a number of milliseconds, whose fraction is rounded up.
func parseWait(s string) (time.Duration, error) {
	whole, fraction, hasFraction := strings.Cut(s, ".")
	wait, ok := parseMillis(whole)
	if !ok || hasFraction && fraction == "" {
		return 0, notANumber(s, "a number of milliseconds in decimal digits, 0 or more")
	}
	roundUp := false
	for i := range len(fraction) {
		if fraction[i] < '0' || fraction[i] > '9' {
			return 0, notANumber(s, "a number of milliseconds in decimal digits, 0 or more")
		}
		roundUp = roundUp || fraction[i] != '0'
	}
	if roundUp && wait != lock.Forever {
		wait += time.Millisecond
	}
	return wait, nil
}

// parseTTL reads a positive number of milliseconds.
func parseTTL(s string) (time.Duration, error) {
	ttl, ok := parseMillis(s)
	if !ok || ttl == 0 {
		return 0, notANumber(s, "a positive integer of milliseconds in decimal digits")
	}
	return ttl, nil
}

// parseMillis reads decimal digits. More milliseconds than a clock can count
// are for ever.
func parseMillis(digits string) (time.Duration, bool) {
	if digits == "" {
		return 0, false
	}
	const most = math.MaxInt64/int64(time.Millisecond) - 1 // one is left for rounding up
	var ms int64
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		ms = min(ms*10+int64(c-'0'), most+1)
	}
	if ms > most {
		return lock.Forever, true
	}
	return time.Duration(ms) * time.Millisecond, true
}

func parseDetail(s string) (bool, error) {
	switch s {
	case "1":
		return true, nil
	case "0":
		return false, nil
	}
	return false, notANumber(s, "1 or 0")
}

func notANumber(s, want string) error {
	const most = 40 // an answer must not grow with the request
	if len(s) > most {
		return fmt.Errorf("%q… is not %s", s[:most], want)
	}
	return fmt.Errorf("%q is not %s", s, want)
}
