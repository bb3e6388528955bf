package web

import (
	"bytes"
	"context"
	"sync"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/internal/kit/visible"
	"github.com/callyard/callyard/internal/store/ledger"
)

const (
	// maxKeptPeeks limits the number of cached peeks.
	maxKeptPeeks = 2000
	peekLines    = 5
	peekWidth    = 120 // bytes per line
)

// preview is the beginning of arguments.
type preview struct {
	Lines []peekLine
	Rest  int // the number of lines that are not shown; -1 means that the lines were not counted
	Size  int // total size in bytes
}

// peekLine is a line of arguments. Cut reports whether it is truncated.
type peekLine struct {
	Text []byte
	Cut  bool
}

// peek returns the beginning of the effective arguments, or nil if they cannot be read; the list
// is shown without them. Large arguments are not read.
func (v *approvals) peek(ctx context.Context, a *ledger.Approval) *preview {
	bound := a.Bound()
	key := [2]string{string(a.ID), bound.ArgumentsDigest}
	if p, ok := v.peeks.get(key); ok {
		return p
	}
	size := a.ArgumentsSize
	if a.Edited != nil {
		size = a.Edited.Size
	}
	p := &preview{Size: int(size), Rest: -1}
	if !a.Apart {
		args, err := v.o.Ledger.ArgumentsOf(ctx, a)
		if err != nil {
			v.o.Log.Debug("the arguments of a pending call cannot be shown in the list", "approval_id", a.ID, "error", err)
			return nil
		}
		p = previewOf(args)
	}
	v.peeks.put(key, p)
	return p
}

// previewOf returns the beginning of arguments, on one line if all of them fit on one.
func previewOf(args []byte) *preview {
	p := &preview{Size: len(args)}
	text := args
	if len(args) > peekWidth {
		if pretty := indented(args); pretty != nil {
			text = pretty
		}
	}
	lines := bytes.Split(visible.Readable(text), []byte("\n"))
	p.Rest = max(len(lines)-peekLines, 0)
	for _, line := range lines[:len(lines)-p.Rest] {
		long := len(line) > peekWidth
		p.Lines = append(p.Lines, peekLine{bytes.Clone(truncate.Head(line, peekWidth)), long})
	}
	return p
}

// peeks caches peeks by approval and digest. It is safe for concurrent use; the zero value
// is empty.
type peeks struct {
	mu   sync.Mutex
	kept map[[2]string]*preview
}

func (p *peeks) get(key [2]string) (*preview, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.kept[key]
	return found, ok
}

// put adds a peek. It clears a full cache, which also removes the calls that were decided long ago.
func (p *peeks) put(key [2]string, found *preview) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil || len(p.kept) >= maxKeptPeeks {
		p.kept = make(map[[2]string]*preview)
	}
	p.kept[key] = found
}
