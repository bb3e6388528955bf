package cli

import (
	"cmp"
	"fmt"
	"slices"

	callyard "github.com/callyard/callyard/clients/go"
)

// changes describes the differences between two views of the fleet. It ignores load, which changes
// constantly.
func changes(before, after *callyard.Fleet) []cell {
	var news []cell
	say := func(paint colour, format string, args ...any) {
		news = append(news, cell{fmt.Sprintf(format, args...), paint})
	}
	for i := range after.Workers {
		w := &after.Workers[i]
		old := find(before.Workers, func(o *callyard.WorkerItem) bool { return o.ID == w.ID })
		if old == nil {
			say(green, "worker %s started, on %s, with %s", w.ID, cmp.Or(w.Host, "an unknown host"), count(len(w.Servers), "server"))
		}
		if w.Draining && (old == nil || !old.Draining) {
			say(yellow, "worker %s is draining", w.ID)
		}
	}
	for i := range before.Workers {
		id := before.Workers[i].ID
		if find(after.Workers, func(w *callyard.WorkerItem) bool { return w.ID == id }) == nil {
			say(red, "worker %s stopped", id)
		}
	}
	for i := range after.Servers {
		s := &after.Servers[i]
		old := find(before.Servers, func(o *callyard.ServerItem) bool { return o.ID == s.ID })
		if old == nil {
			old = &callyard.ServerItem{}
		}
		if now := serverWords(s); now != serverWords(old) {
			say(stateCell(readiness(string(s.InitializationState))).paint, "server %s: %s", s.ID, now)
		}
	}
	for i := range before.Servers {
		id := before.Servers[i].ID
		if find(after.Servers, func(s *callyard.ServerItem) bool { return s.ID == id }) == nil {
			say(red, "server %s was removed", id)
		}
	}
	return news
}

// serverWords describes the state of a server, limited to properties whose changes are reported.
func serverWords(s *callyard.ServerItem) string {
	text := readiness(string(s.InitializationState))
	if s.Tools != nil {
		text += ", " + count(int(*s.Tools), "tool")
	}
	return text + ", " + count(int(s.WorkerCount), "worker") + withReason(deref(s.Error))
}

func count(n int, noun string) string { return countOf(n, noun, noun+"s") }

// countOf is [count] for a noun with an irregular plural.
func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// find returns the first item that matches, or nil.
func find[T any](items []T, fits func(*T) bool) *T {
	i := slices.IndexFunc(items, func(item T) bool { return fits(&item) })
	if i < 0 {
		return nil
	}
	return &items[i]
}
