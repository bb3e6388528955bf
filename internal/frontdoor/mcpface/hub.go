package mcpface

import (
	"slices"
	"sync"
)

// hub knows who listens to changes.
type hub struct {
	mu   sync.Mutex
	ears map[*ear]struct{}
}

func (h *hub) open() { h.ears = make(map[*ear]struct{}) }

// wants is what a listener asked for.
type wants struct {
	tools, prompts, resources bool
	tasks                     []string
	room                      *session // whose subscriptions to resources count; nil for none
}

// word is one notification.
type word struct {
	method string
	params []byte
}

// ear is one listener. wake has room for one word: many changes are one.
type ear struct {
	mount string
	wants wants
	wake  chan struct{}

	mu    sync.Mutex
	seen  marks
	words []word
}

// wordsMost bounds what waits for a listener that reads slowly.
const wordsMost = 256

func (h *hub) add(f *Face, mount string, w wants) *ear {
	e := &ear{mount: mount, wants: w, wake: make(chan struct{}, 1), seen: f.view(mount).marks}
	h.mu.Lock()
	h.ears[e] = struct{}{}
	h.mu.Unlock()
	return e
}

func (h *hub) remove(e *ear) {
	h.mu.Lock()
	delete(h.ears, e)
	h.mu.Unlock()
}

func (h *hub) all() []*ear {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*ear, 0, len(h.ears))
	for e := range h.ears {
		all = append(all, e)
	}
	return all
}

// tell has every listener look whether its lists changed.
func (f *Face) tell() {
	for _, e := range f.hub.all() {
		now := f.view(e.mount).marks
		e.mu.Lock()
		was := e.seen
		e.seen = now
		e.mu.Unlock()
		if e.wants.tools && was.tools != now.tools {
			e.say("notifications/tools/list_changed", nil)
		}
		if e.wants.resources && was.resources != now.resources {
			e.say("notifications/resources/list_changed", nil)
		}
		if e.wants.prompts && was.prompts != now.prompts {
			e.say("notifications/prompts/list_changed", nil)
		}
	}
}

// say has a notification sent; one without params that waits already is enough.
func (e *ear) say(method string, params []byte) {
	e.mu.Lock()
	if params == nil && slices.ContainsFunc(e.words, func(w word) bool { return w.method == method }) || len(e.words) >= wordsMost {
		e.mu.Unlock()
		return
	}
	e.words = append(e.words, word{method, params})
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// each hands out what waits.
func (e *ear) each(send func(method string, params []byte) error) error {
	e.mu.Lock()
	words := e.words
	e.words = nil
	e.mu.Unlock()
	for _, w := range words {
		if err := send(w.method, w.params); err != nil {
			return err
		}
	}
	return nil
}
