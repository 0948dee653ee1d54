package caddymodule

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/lockgateway/lockgateway/internal/adminapi"
)

// table prints rows of cells in columns.
func table(out io.Writer, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// section prints a table after an empty line.
func section(out io.Writer, rows [][]string) error {
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return table(out, rows)
}

// visible quotes a name that would not look like itself: a lock's id may have
// anything in it, a terminal's commands too.
func visible(name string) string {
	odd := strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
	if odd || name == "" || strings.HasPrefix(name, `"`) || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}

// shellWord writes a name as a POSIX shell takes it for one word, and a terminal for
// text: printf makes what cannot be printed.
func shellWord(name string) string {
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/-_.:,@%+", r))
	}
	if name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return name
	}
	var word strings.Builder
	word.WriteByte('\'')
	for _, r := range name {
		switch {
		case r == '\'':
			word.WriteString(`'\''`)
		case r == '\n' || unicode.IsPrint(r): // a shell drops newlines at the end of what printf makes
			word.WriteRune(r)
		default:
			word.WriteString(`'"$(printf '`)
			for _, b := range []byte(string(r)) {
				fmt.Fprintf(&word, `\%03o`, b)
			}
			word.WriteString(`')"'`)
		}
	}
	word.WriteByte('\'')
	return word.String()
}

// age tells for how long something has been so.
func age(since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return rounded(max(time.Since(since), 0))
}

// rounded writes a duration as people say it.
func rounded(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 2*day:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func printList(out io.Writer, a listJSON) error {
	rows := [][]string{{"LOCK", "HELD", "FOR", "WAITING", "FOR"}}
	for _, l := range a.Locks {
		rows = append(rows, []string{visible(l.Lock), number(l.Held), age(l.HeldSince), number(l.Waiting), age(l.WaitingSince)})
	}
	if err := table(out, rows); err != nil {
		return err
	}
	if hidden := a.Matching - int64(len(a.Locks)); hidden > 0 {
		if _, err := fmt.Fprintf(out, "%d of %d locks\n", len(a.Locks), a.Matching); err != nil {
			return err
		}
	}
	if a.Next != "" {
		if _, err := fmt.Fprintf(out, "more: --after %s\n", shellWord(a.Next)); err != nil {
			return err
		}
	}
	if a.Unreadable > 0 {
		_, err := fmt.Fprintf(out, "%d records of the store cannot be read; they are left as they are\n", a.Unreadable)
		return err
	}
	return nil
}

func printDetail(out io.Writer, a detailJSON) error {
	rows := [][]string{
		{"lock", visible(a.Lock)},
		{"backend", a.Backend},
		{"held", number(a.Held), age(a.HeldSince)},
		{"waiting", number(a.Waiting), age(a.WaitingSince)},
	}
	if err := table(out, rows); err != nil {
		return err
	}
	if a.Held > 0 {
		rows = [][]string{{"HOLDER", "TOKEN", "FOR", "LEFT"}}
		if a.Anonymous > 0 {
			rows = append(rows, []string{fmt.Sprintf("(%d without a name)", a.Anonymous), "-", "-", "-"})
		}
		for _, h := range a.Holders {
			left := "-"
			if h.ExpiresInMs > 0 {
				left = rounded(time.Duration(h.ExpiresInMs) * time.Millisecond)
			}
			rows = append(rows, []string{visible(h.Holder), strconv.FormatUint(h.Token, 10), age(h.Since), left})
		}
		if a.MoreHolders > 0 {
			rows = append(rows, []string{fmt.Sprintf("(%d more)", a.MoreHolders), "-", "-", "-"})
		}
		if err := section(out, rows); err != nil {
			return err
		}
	}
	if len(a.Queue) == 0 {
		return nil
	}
	rows = [][]string{{"QUEUE", "PLACES", "FOR", "GATEWAY"}}
	for i, q := range a.Queue {
		kind := "without a name"
		if q.Named {
			kind = "of a holder"
		}
		rows = append(rows, []string{fmt.Sprintf("%d. %s", i+1, kind), number(q.Count), age(q.Since), strings.Join(q.Gateways, " ")})
	}
	if a.MorePlaces > 0 {
		rows = append(rows, []string{fmt.Sprintf("(%d more)", a.MorePlaces), "-", "-", ""})
	}
	return section(out, rows)
}

func printGateways(out io.Writer, a gatewaysJSON) error {
	if len(a.Gateways) == 0 {
		_, err := fmt.Fprintln(out, "the locks are this Caddy's alone")
		return err
	}
	rows := [][]string{{"GATEWAY", "HOST", "FOR", ""}}
	for _, g := range a.Gateways {
		self := ""
		if g.Self {
			self = "the one asked"
		}
		rows = append(rows, []string{g.ID, visible(g.Host), age(g.Since), self})
	}
	return table(out, rows)
}

func printBackends(out io.Writer, a backendsJSON) error {
	rows := [][]string{{"BACKEND", "DATA", "READY"}}
	for _, b := range a.Backends {
		ready := "yes"
		if !b.Ready {
			ready = "no: " + b.Reason
		}
		rows = append(rows, []string{b.ID, visible(b.Data), ready})
	}
	return table(out, rows)
}

func printNodes(out io.Writer, a adminapi.Nodes) error {
	rows := [][]string{{"NODE", "RUNS", "HAS ALL DATA", ""}}
	for _, n := range a.Nodes {
		var notes []string
		if n.Leader {
			notes = append(notes, "leads")
		}
		if n.Self {
			notes = append(notes, "the one asked")
		}
		if n.Problem != "" {
			notes = append(notes, n.Problem)
		}
		rows = append(rows, []string{cmp.Or(n.Node, n.ID), yesNo(n.Online), yesNo(n.Current), strings.Join(notes, "; ")})
	}
	if err := table(out, rows); err != nil || a.Moving == "" {
		return err
	}
	_, err := fmt.Fprintf(out, "the stream %s is not on all nodes yet that it is to be on\n", a.Moving)
	return err
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
