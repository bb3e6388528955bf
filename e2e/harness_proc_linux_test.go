package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stat returns the state and the parent of a process. ok is false if it has ended.
func stat(pid int) (state byte, parent int, ok bool) {
	return statOf(fmt.Sprintf("/proc/%d/stat", pid))
}

func statOf(file string) (state byte, parent int, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, false
	}
	// The name is in parentheses and may contain any character.
	end := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[end+1:]))
	parent, _ = strconv.Atoi(fields[1])
	return fields[0][0], parent, true
}

// alive reports whether the process runs. A zombie does not.
func alive(pid int) bool {
	state, _, ok := stat(pid)
	return ok && state != 'Z' && state != 'X'
}

// frozen reports whether each thread of the process is stopped. A stop signal is pending
// until a thread gets a processor.
func frozen(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, file := range threads {
		if state, _, ok := statOf(file); ok && state != 'T' {
			return false
		}
	}
	return true
}

// processes returns the parent of every live process.
func processes() (map[int]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing the processes: %w", err)
	}
	parents := map[int]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if state, parent, ok := stat(pid); ok && state != 'Z' && state != 'X' {
			parents[pid] = parent
		}
	}
	return parents, nil
}

// descriptors returns the number of open files of the process.
func descriptors(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries), err
}
