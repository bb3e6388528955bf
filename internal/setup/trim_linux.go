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

// dropProgram unmaps the unmodified pages of the program's file, code and tables. Two thirds of
// them are used only during the start. They remain in the kernel's page cache and are mapped again
// on use.
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
		// madvise is only advice. If it fails, the pages stay mapped.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, p.from, p.to-p.from, unix.MADV_DONTNEED)
	}
}

// unwritten parses /proc/PID/smaps (proc(5)) and returns the mappings of the file that are not
// writable and have no anonymous pages, which relocated code has. Only pages that can be read again
// from the file may be dropped.
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
