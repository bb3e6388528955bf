package bench

import (
	"maps"
	"slices"
	"time"
)

// Names under which CPU time is reported.
const (
	toolServer = "tool server"
	generator  = "generator"
)

// meter reads the CPU time of the processes of a target.
type meter struct {
	roots map[string]int
	known map[int]string // what is read, by process
}

// reading is the CPU time used so far, by process; 0 is this process.
type reading map[int]time.Duration

// find looks for the processes. What the roots started, at any depth, counts as
// "tool server" unless it is a root itself. This is the expensive half and is
// done before the clock runs; a process that comes later is not seen.
func (m *meter) find() {
	m.known = map[int]string{0: generator}
	roots := slices.Collect(maps.Values(m.roots))
	if len(roots) > 0 {
		for _, pid := range descendants(roots) {
			m.known[pid] = toolServer
		}
	}
	for name, pid := range m.roots {
		m.known[pid] = name
	}
}

// read takes a reading of what was found.
func (m *meter) read() reading {
	r := make(reading, len(m.known))
	for pid := range m.known {
		if pid == 0 {
			continue
		}
		if used, ok := processCPU(pid); ok {
			r[pid] = used
		}
	}
	if used, ok := ownCPU(); ok {
		r[0] = used
	}
	return r
}

// between returns what each name used between two readings. A process that went
// away in between is left out.
func (m *meter) between(from, to reading) map[string]time.Duration {
	used := make(map[string]time.Duration)
	for pid, now := range to {
		if before, ok := from[pid]; ok {
			used[m.known[pid]] += now - before
		}
	}
	return used
}

// below returns the processes under the roots in a map of children to parents,
// without the roots.
func below(parents map[int]int, roots []int) []int {
	var found []int
	for pid := range parents {
		if slices.Contains(roots, pid) {
			continue
		}
		// The walk is bounded: what is read while processes come and go may
		// hold a circle.
		for up, steps := parents[pid], 0; up > 1 && steps < 64; up, steps = parents[up], steps+1 {
			if slices.Contains(roots, up) {
				found = append(found, pid)
				break
			}
		}
	}
	slices.Sort(found)
	return found
}
