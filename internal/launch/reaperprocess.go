package launch

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
)

// The input of the reaper is lines: "=COOKIE" once, then "+PGID", "-PGID", "!NOTE" and "~NOTE". Its
// only output is the ready word, once.
const readyWord = "reaper\n"

func cookieLine(cookie string) string   { return "=" + cookie + "\n" }
func addLine(pgid int) string           { return "+" + strconv.Itoa(pgid) + "\n" }
func removeLine(pgid int) string        { return "-" + strconv.Itoa(pgid) + "\n" }
func noteLine(text string) string       { return "!" + text + "\n" }
func removeNoteLine(text string) string { return "~" + text + "\n" }

// IsReaper reports whether this process was started as a reaper. A main must call it first.
func IsReaper() bool { return os.Getenv(reaperVariable) == "1" }

// RunReaper is the whole program of a reaper. It records the process groups of the children until the
// worker has ended, then kills them, their descendants and every process with the worker's cookie.
// After that it calls each function of last in order, once for every note of [Launcher.Remember]; by
// then the worker has ended or closed its Launcher. It returns the exit code of the process.
func RunReaper(last ...func(note string)) int {
	// It must survive every signal that asks a worker to end.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGTSTP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE)
	debug.FreeOSMemory() // it waits for days
	if _, err := os.Stdout.WriteString(readyWord); err != nil {
		return 1
	}
	os.Stdout.Close()

	list := watchlist{groups: make(map[int]struct{})}
	err := list.read(os.Stdin)
	list.kill()
	for _, do := range last {
		for _, note := range list.notes {
			do(note)
		}
	}
	if err != nil {
		return 1
	}
	return 0
}

// watchlist is the state of a reaper.
type watchlist struct {
	cookie string
	groups map[int]struct{}
	notes  []string
}

// read processes lines until the end of the input. It ignores an unknown line, because the others still
// count.
func (w *watchlist) read(r io.Reader) error {
	lines := bufio.NewReaderSize(r, 4<<10)
	tooLong := false
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == nil:
			if !tooLong {
				w.apply(string(line[:len(line)-1]))
			}
			tooLong = false
		case errors.Is(err, bufio.ErrBufferFull):
			tooLong = true
		case errors.Is(err, io.EOF): // an incomplete line does not count
			return nil
		default:
			return err
		}
	}
}

func (w *watchlist) apply(line string) {
	if line == "" {
		return
	}
	rest := line[1:]
	if line[0] == '=' {
		w.cookie = rest
		return
	}
	switch line[0] {
	case '!':
		w.notes = append(w.notes, rest)
		return
	case '~':
		if i := slices.Index(w.notes, rest); i >= 0 {
			w.notes = slices.Delete(w.notes, i, i+1)
		}
		return
	}
	pgid, err := strconv.Atoi(rest)
	if err != nil || pgid <= 1 || pgid > 1<<30 || rest[0] == '+' {
		return
	}
	switch line[0] {
	case '+':
		w.groups[pgid] = struct{}{}
	case '-':
		delete(w.groups, pgid)
	}
}

// kill ends everything. It reads the process trees first, while they are complete.
func (w *watchlist) kill() {
	var tree []identity
	for pgid := range w.groups {
		tree = append(tree, treeOf(pgid)...)
	}
	for pgid := range w.groups {
		killGroup(pgid, syscall.SIGKILL)
	}
	killTree(tree)
	if w.cookie != "" {
		prefix := w.cookie + "."
		killMatching(func(cookie []byte) bool {
			return len(cookie) > len(prefix) && string(cookie[:len(prefix)]) == prefix
		}, sweepLimit)
	}
}
