package web

import (
	"bytes"
	"context"
	"sync"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/store/ledger"
)

const (
	// mostPeeks is how many cards of a list show arguments: each may take a read.
	mostPeeks = 100
	// keptPeeks is how many are kept for the next time that a list is shown.
	keptPeeks = 2000
	peekLines = 5
	peekWidth = 120 // bytes of a line
)

// peek is the beginning of arguments.
type peek struct {
	Text []byte // lines that are shown
	Rest int    // how many lines are not shown; -1: some, and the lines are not counted
	Size int    // bytes in all
}

// peek returns the beginning of what would run, nil where it cannot be read: the list is
// shown all the same. Large arguments are not read for it.
func (v *approvals) peek(ctx context.Context, a *ledger.Approval) *peek {
	bound := a.Bound()
	key := [2]string{a.ID, bound.ArgumentsDigest}
	if p, ok := v.peeks.get(key); ok {
		return p
	}
	size := a.ArgumentsSize
	if a.Edited != nil {
		size = a.Edited.Size
	}
	p := &peek{Size: int(size), Rest: -1}
	if !a.Apart {
		args, err := v.o.Ledger.ArgumentsOf(ctx, a)
		if err != nil {
			v.o.Log.Debug("the arguments of a waiting call cannot be shown in the list", "approval_id", a.ID, "error", err)
			return nil
		}
		p = peekOf(args)
	}
	v.peeks.put(key, p)
	return p
}

// peekOf is the beginning of arguments: all of them on one line where they fit on one.
func peekOf(args []byte) *peek {
	p := &peek{Size: len(args)}
	text := args
	if len(args) > peekWidth {
		if pretty := indented(args); pretty != nil {
			text = pretty
		}
	}
	lines := bytes.Split(text, []byte("\n"))
	p.Rest = max(len(lines)-peekLines, 0)
	for i, line := range lines[:len(lines)-p.Rest] {
		if i > 0 {
			p.Text = append(p.Text, '\n')
		}
		if len(line) > peekWidth {
			end := peekWidth
			for end > peekWidth-utf8.UTFMax && !utf8.RuneStart(line[end]) {
				end--
			}
			line = append(bytes.Clone(line[:end]), " …"...)
		}
		p.Text = append(p.Text, line...)
	}
	return p
}

// peeks keeps what lists show of arguments, by approval and digest. It is safe for
// concurrent use; the zero value is empty.
type peeks struct {
	mu   sync.Mutex
	kept map[[2]string]*peek
}

func (p *peeks) get(key [2]string) (*peek, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.kept[key]
	return found, ok
}

// put keeps one more. When too many are kept it begins again, without those of calls that
// were decided long ago.
func (p *peeks) put(key [2]string, found *peek) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil || len(p.kept) >= keptPeeks {
		p.kept = make(map[[2]string]*peek)
	}
	p.kept[key] = found
}
