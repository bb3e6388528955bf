package bench

import (
	"maps"
	"slices"
	"time"
)

// Names of processes in reports of CPU time.
const (
	toolServer = "tool server"
	generator  = "generator"
)

// meter reads the CPU time of the processes of a target.
type meter struct {
	roots map[string]int
	known map[int]string // the processes to read, with their names
}

// reading maps process IDs to the CPU time used so far. 0 is this process.
type reading map[int]time.Duration

// find finds the processes. Descendants of the roots count as "tool server", unless they
// are roots themselves. This is the expensive part and runs before the measurement;
// processes that start later are not included.
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

// read reads the CPU time of the known processes.
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

// between returns the CPU time of each name between two readings. It omits processes
// that ended in between.
func (m *meter) between(from, to reading) map[string]time.Duration {
	used := make(map[string]time.Duration)
	for pid, now := range to {
		if before, ok := from[pid]; ok {
			used[m.known[pid]] += now - before
		}
	}
	return used
}

// below returns the descendants of the roots in a map from children to parents,
// without the roots.
func below(parents map[int]int, roots []int) []int {
	var found []int
	for pid := range parents {
		if slices.Contains(roots, pid) {
			continue
		}
		// Limit the depth: a map that is read while processes start and end may
		// contain a cycle.
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
