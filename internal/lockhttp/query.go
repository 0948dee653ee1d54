package lockhttp

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// The parameters, as errors name them.
const (
	waitParameter   = "waitTimeoutMs"
	holderParameter = "holder"
	ttlParameter    = "ttlMs"
	detailParameter = "detail"
)

// parameters are those that each action knows. All others are ignored.
var parameters = map[Action][]string{
	Acquire: {waitParameter, holderParameter, ttlParameter},
	Release: {holderParameter},
	Value:   {detailParameter},
}

// readQuery reads the parameters that the request's action knows. Names are
// case-insensitive. Of a parameter given twice the first counts, except that
// two different holders are an error.
func (req *Request) readQuery(query string) error {
	if query == "" {
		return nil
	}
	given := make(map[string]bool, 3)
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, text, _ := strings.Cut(pair, "=")
		parameter := parameterOf(req.Action, name)
		if parameter == "" || given[parameter] && parameter != holderParameter {
			continue
		}
		text, err := url.QueryUnescape(text)
		if err == nil {
			err = req.set(parameter, text, given[parameter])
		}
		if err != nil {
			return fmt.Errorf("parameter %s: %w", parameter, err)
		}
		given[parameter] = true
	}
	if given[ttlParameter] && !given[holderParameter] {
		return errors.New("parameter ttlMs needs a holder, whose slot it ends")
	}
	return nil
}

// parameterOf returns which parameter of an action an encoded name is, empty if
// none.
func parameterOf(a Action, encoded string) string {
	name, err := url.QueryUnescape(encoded)
	if err != nil {
		return ""
	}
	for _, p := range parameters[a] {
		if isNamed(name, p) {
			return p
		}
	}
	return ""
}

func (req *Request) set(parameter, text string, again bool) (err error) {
	switch parameter {
	case waitParameter:
		req.Wait, err = parseWait(text)
	case ttlParameter:
		req.TTL, err = parseTTL(text)
	case detailParameter:
		req.Detail, err = parseDetail(text)
	case holderParameter:
		if err := lock.CheckHolder(text); err != nil {
			return err
		}
		if again && text != req.Holder {
			return errors.New("two different values are given")
		}
		// A copy, since a slot that keeps the name must not keep the request.
		req.Holder = strings.Clone(text)
	}
	return err
}

// isNamed compares ASCII names without regard to case. Equal lengths keep out
// the few other characters that fold to ASCII letters.
func isNamed(name, want string) bool {
	return len(name) == len(want) && strings.EqualFold(name, want)
}

const wantWait = "a number of milliseconds in decimal digits, 0 or more"

// parseWait reads a number of milliseconds, whose fraction is rounded up.
func parseWait(s string) (time.Duration, error) {
	whole, fraction, hasFraction := strings.Cut(s, ".")
	wait, ok := parseMillis(whole)
	if !ok || hasFraction && fraction == "" {
		return 0, invalid(s, wantWait)
	}
	roundUp := false
	for i := range len(fraction) {
		if fraction[i] < '0' || fraction[i] > '9' {
			return 0, invalid(s, wantWait)
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
		return 0, invalid(s, "a positive integer of milliseconds in decimal digits")
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
	return false, invalid(s, "1 or 0")
}

func invalid(s, want string) error {
	const most = 40 // an answer must not grow with the request
	if len(s) > most {
		return fmt.Errorf("%q… is not %s", s[:most], want)
	}
	return fmt.Errorf("%q is not %s", s, want)
}
