package worker

import "time"

const (
	// lostFor is how long the numbers of lost messages are kept. A message can be on its way for as
	// long as a NATS server is stopped, for example with its machine.
	lostFor = time.Hour
	// maxLost limits the lost messages. Without space for another one, the worker does not report that
	// a message did not arrive.
	maxLost = 1 << 17
)

// lostMessages holds the numbers of messages that the worker has reported as lost, and refuses therefore
// if they arrive later: their router has sent the calls again. They outlast the remembered outcomes,
// because such a call may have ended and been forgotten by then. The lock of a memory guards it.
type lostMessages struct {
	numbers map[uint64]struct{}
	order   []lostMessage // oldest first
}

type lostMessage struct {
	number uint64
	at     time.Time
}

// add returns false if there is no space.
func (l *lostMessages) add(number uint64, now time.Time) bool {
	if l.has(number) {
		return true
	}
	if len(l.order) >= maxLost {
		return false
	}
	if l.numbers == nil {
		l.numbers = make(map[uint64]struct{})
	}
	l.numbers[number] = struct{}{}
	l.order = append(l.order, lostMessage{number, now})
	return true
}

func (l *lostMessages) has(number uint64) bool {
	_, there := l.numbers[number]
	return there
}

// trim forgets messages that are too old.
func (l *lostMessages) trim(now time.Time) {
	for len(l.order) > 0 && now.Sub(l.order[0].at) > lostFor {
		delete(l.numbers, l.order[0].number)
		l.order = l.order[1:]
	}
}
