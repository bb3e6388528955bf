package e2e

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// stateOf returns the state of a process in the format of ps. ok is false if it has ended.
func stateOf(pid int) (state string, ok bool) {
	text, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	return strings.TrimSpace(string(text)), err == nil
}

// alive reports whether the process runs.
func alive(pid int) bool {
	state, ok := stateOf(pid)
	return ok && !strings.HasPrefix(state, "Z")
}

// frozen reports whether the process is stopped.
func frozen(pid int) bool {
	state, ok := stateOf(pid)
	return ok && strings.HasPrefix(state, "T")
}

// processes returns the parent of every live process.
func processes() (map[int]int, error) {
	text, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,state=").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the processes: %w", err)
	}
	parents := map[int]int{}
	for line := range strings.Lines(string(text)) {
		var pid, parent int
		var state string
		if _, err := fmt.Sscan(line, &pid, &parent, &state); err == nil && !strings.HasPrefix(state, "Z") {
			parents[pid] = parent
		}
	}
	return parents, nil
}

// descriptors returns the number of open files of the process.
func descriptors(pid int) (int, error) {
	text, err := exec.Command("lsof", "-a", "-p", strconv.Itoa(pid), "-d", "^cwd,^txt,^rtd").Output()
	return strings.Count(string(text), "\n"), err
}
