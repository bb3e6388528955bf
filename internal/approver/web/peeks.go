package web

import "sync"

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
