package cli

import (
	"fmt"
	"slices"
	"strings"
)

// changes says in words what is different between two views of the fleet. Load
// is left out: it changes all the time.
func changes(before, after *fleet) []cell {
	var news []cell
	say := func(paint colour, format string, args ...any) {
		news = append(news, cell{fmt.Sprintf(format, args...), paint})
	}
	for i := range after.Workers {
		w := &after.Workers[i]
		old := find(before.Workers, func(o *workerItem) bool { return o.ID == w.ID })
		switch {
		case old == nil:
			say(green, "worker %s is there, on %s, with %s", w.ID, firstOf(w.Host, "an unknown host"), count(len(w.Servers), "server"))
			if w.Draining {
				say(yellow, "worker %s is draining", w.ID)
			}
		case w.Draining && !old.Draining:
			say(yellow, "worker %s is draining", w.ID)
		}
	}
	for i := range before.Workers {
		id := before.Workers[i].ID
		if find(after.Workers, func(w *workerItem) bool { return w.ID == id }) == nil {
			say(red, "worker %s is gone", id)
		}
	}
	for i := range after.Servers {
		s := &after.Servers[i]
		old := find(before.Servers, func(o *serverItem) bool { return o.ID == s.ID })
		if old == nil {
			old = &serverItem{}
		}
		if now := s.words(); now != old.words() {
			say(stateCell(s.State).paint, "server %s: %s", s.ID, now)
		}
	}
	for i := range before.Servers {
		id := before.Servers[i].ID
		if find(after.Servers, func(s *serverItem) bool { return s.ID == id }) == nil {
			say(red, "server %s is gone", id)
		}
	}
	return news
}

// words is how a server is, as far as its changes are news.
func (s *serverItem) words() string {
	parts := []string{s.State}
	if s.Tools != nil {
		parts = append(parts, count(*s.Tools, "tool"))
	}
	text := strings.Join(append(parts, count(s.WorkerCount, "worker")), ", ")
	if s.Error != "" {
		text += ": " + s.Error
	}
	return text
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// find returns the first item that fits, nil without one.
func find[T any](items []T, fits func(*T) bool) *T {
	i := slices.IndexFunc(items, func(item T) bool { return fits(&item) })
	if i < 0 {
		return nil
	}
	return &items[i]
}
