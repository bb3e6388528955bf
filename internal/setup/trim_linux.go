package setup

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pages is a range of the address space.
type pages struct{ from, to uintptr }

// dropProgram unmaps the pages of the program's file that nobody has written to: code and
// tables, two thirds of which only the start needs. They stay in the kernel's cache, and
// what is used is mapped again at its next use.
func dropProgram() {
	self, err := os.Executable()
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	for _, p := range unwritten(f, self) {
		// It is advice: where it is not taken, the pages stay.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, p.from, p.to-p.from, unix.MADV_DONTNEED)
	}
}

// unwritten reads the form of /proc/PID/smaps (proc(5)) and returns the mappings of the
// file that cannot be written and have no page of their own (Anonymous), as code has that was
// relocated: only what can be read again may be dropped.
func unwritten(smaps io.Reader, file string) (found []pages) {
	var (
		now pages
		fit bool
	)
	for s := bufio.NewScanner(smaps); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) >= 5 && !strings.HasSuffix(fields[0], ":") { // a mapping begins
			now, fit = pages{}, false
			from, to, ok := strings.Cut(fields[0], "-")
			a, errA := strconv.ParseUint(from, 16, 64)
			b, errB := strconv.ParseUint(to, 16, 64)
			if ok && errA == nil && errB == nil && a < b && len(fields) == 6 && fields[5] == file {
				now, fit = pages{uintptr(a), uintptr(b)}, fields[1] == "r--p" || fields[1] == "r-xp"
			}
			continue
		}
		if fit && len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0" {
			found = append(found, now)
		}
	}
	return found
}
