package worker

// maxEarlyCancels limits the cancellations that are remembered before their calls arrive. It is more
// than the calls that front doors give up while this process is stopped for a minute.
const maxEarlyCancels = 1 << 13

// earlyCancels remembers the numbers of canceled calls that have not arrived. Cancellations and calls
// arrive on different subscriptions, so a cancellation can be processed before the call that was sent
// earlier: at once after the call, or when a process that was stopped continues. Cancellations of calls
// that have ended are remembered too, and displaced by later ones.
type earlyCancels struct {
	seqs map[uint64]struct{}
	ring []uint64
	next int
}

func (e *earlyCancels) add(seq uint64) {
	if e.seqs == nil {
		e.seqs = make(map[uint64]struct{})
	}
	if _, there := e.seqs[seq]; there {
		return
	}
	e.seqs[seq] = struct{}{}
	if len(e.ring) < maxEarlyCancels {
		e.ring = append(e.ring, seq)
		return
	}
	delete(e.seqs, e.ring[e.next])
	e.ring[e.next] = seq
	e.next = (e.next + 1) % maxEarlyCancels
}

func (e *earlyCancels) has(seq uint64) bool {
	_, there := e.seqs[seq]
	return there
}

// Cancel cancels a call; see [bus.Handler].
func (w *Worker) Cancel(seq uint64) {
	w.mu.Lock()
	j := w.jobs[seq]
	if j == nil {
		w.early.add(seq)
	}
	w.mu.Unlock()
	if j == nil {
		return
	}
	j.ended.Store(true)
	if r := j.running.Load(); r != nil {
		r.Cancel()
	}
	if abandon := j.abandon.Load(); abandon != nil {
		(*abandon)()
	}
}
