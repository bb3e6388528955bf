//go:build !linux

package hostile

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// Peak returns the current memory of a process in bytes, because this system records no peak.
func Peak(pid int) (int64, error) {
	text, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	kilobytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	return kilobytes << 10, nil
}
