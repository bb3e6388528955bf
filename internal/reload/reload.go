package reload

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/pkg/schema"
)

// Every is the interval between checks of a file. An edit is applied at the first check that finds the
// same content as the previous one, and so within twice the interval.
const Every = 500 * time.Millisecond

// Part is a part of the configuration that is reloaded.
type Part struct {
	// Name is one of schema.PartPolicy, PartServers and PartKeys.
	Name string
	// Files are the files that the part is read from.
	Files []string
	// Seen is the stamp of the files, taken before the effective version was read.
	Seen Stamp
	// Version is the effective version, with its Entries if it has any; see [schema.InForce].
	Version string
	Entries map[string]string
	// Read reads and validates all files. On an error nothing changes.
	Read func() (Next, error)
	// Pending returns one sentence for each piece of the effective version that does not work yet,
	// or nil if everything works. It must be safe for concurrent use.
	Pending func() []string
}

// Next is a validated version. Apply makes it effective.
type Next struct {
	Version string
	Entries map[string]string
	Apply   func()
}

// Reloader watches the files of its parts. [Reloader.State] is safe for concurrent use.
type Reloader struct {
	log   *slog.Logger
	parts []*watched
	mu    sync.Mutex // guards inForce of parts
}

type watched struct {
	Part
	lookers []cachedFile
	last    Stamp // at the last check
	done    Stamp // at the last attempt
	asked   bool  // reload even if unchanged
	inForce schema.InForce
}

// New returns a reloader of parts whose current versions have just been read. It checks no files before
// [Reloader.Run].
func New(log *slog.Logger, parts ...Part) *Reloader {
	r := &Reloader{log: log}
	now := time.Now().UTC()
	for _, p := range parts {
		w := &watched{Part: p, last: p.Seen, done: p.Seen, inForce: schema.InForce{Part: p.Name, Version: p.Version, Since: now, Tried: now, Entries: p.Entries}}
		for _, file := range p.Files {
			w.lookers = append(w.lookers, cachedFile{path: file})
		}
		r.parts = append(r.parts, w)
	}
	return r
}

// State returns the effective version of each part, in the order of New.
func (r *Reloader) State() []schema.InForce {
	r.mu.Lock()
	all := make([]schema.InForce, len(r.parts))
	for i, p := range r.parts {
		all[i] = p.inForce
		all[i].Entries = maps.Clone(p.inForce.Entries)
	}
	r.mu.Unlock()
	for i, p := range r.parts {
		if p.Pending != nil && all[i].Error == "" {
			all[i].Error = shortly(p.Pending())
		}
	}
	return all
}

// Run watches the files until ctx ends. A value on again reloads all parts, even those that did not
// change.
func (r *Reloader) Run(ctx context.Context, again <-chan os.Signal) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
			r.log.Info("reloading the configuration after a signal", "parts", len(r.parts))
			for _, p := range r.parts {
				p.asked = true
			}
		case <-tick.C:
		}
		r.look()
	}
}

// look reloads files that changed and have settled. If a part was reloaded, it tries the refused parts
// again, because they may have been refused because of that part.
func (r *Reloader) look() {
	taken := false
	for _, p := range r.parts {
		now := lookAt(p.lookers)
		settled := now == p.last
		p.last = now
		if settled && (now != p.done || p.asked) {
			taken = r.take(p) || taken
		}
	}
	if !taken {
		return
	}
	for _, p := range r.parts {
		if p.inForce.Error != "" && p.last == p.done {
			r.take(p)
		}
	}
}

// take reads the files of a part and applies them, and reports whether it did.
func (r *Reloader) take(p *watched) bool {
	next, err := p.Read()
	if now := StampOf(p.Files...); now != p.last {
		p.last = now // changed while being read
		for i := range p.lookers {
			p.lookers[i].info = nil
		}
		return false
	}
	known := !p.asked && p.inForce.Error != "" && p.done == p.last
	p.done, p.asked = p.last, false
	state := p.inForce
	state.Tried = time.Now().UTC()
	if err != nil {
		state.Error = shortly(strings.Split(err.Error(), "\n"))
		if !known {
			r.log.Error("an edit of the configuration was refused; the previous version stays in force", "part", p.Name, "files", p.Files, "version", state.Version, "error", err)
		}
		r.set(p, state)
		return false
	}
	changed := state.Version != next.Version
	if changed {
		state.Version, state.Since = next.Version, state.Tried
	}
	state.Entries, state.Error = next.Entries, ""
	next.Apply()
	r.set(p, state)
	r.log.Info("the configuration was reloaded", "part", p.Name, "files", p.Files, "version", state.Version, "changed", changed)
	return true
}

func (r *Reloader) set(p *watched, state schema.InForce) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.inForce = state
}

// Limits of an error's text, because each announcement of a process contains it.
const (
	maxSentences = 3
	maxSentence  = 300
)

// shortly joins sentences, and states the number that it left out.
func shortly(sentences []string) string {
	sentences = slices.DeleteFunc(slices.Clone(sentences), func(s string) bool { return strings.TrimSpace(s) == "" })
	more := len(sentences) - maxSentences
	sentences = sentences[:min(len(sentences), maxSentences)]
	for i, s := range sentences {
		sentences[i] = truncate.Text(strings.TrimSpace(s), maxSentence)
	}
	text := strings.Join(sentences, " ")
	if more > 0 {
		text += fmt.Sprintf(" (and %d more; the log has all)", more)
	}
	return text
}
