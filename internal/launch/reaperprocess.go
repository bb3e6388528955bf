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

// The reaper's input is lines: "=COOKIE" once, then "+PGID" and "-PGID", "!NOTE" and
// "~NOTE". Its only output is the ready word, once.
const readyWord = "reaper\n"

func cookieLine(cookie string) string { return "=" + cookie + "\n" }
func addLine(pgid int) string         { return "+" + strconv.Itoa(pgid) + "\n" }
func removeLine(pgid int) string      { return "-" + strconv.Itoa(pgid) + "\n" }
func noteLine(text string) string     { return "!" + text + "\n" }
func unnoteLine(text string) string   { return "~" + text + "\n" }

// IsReaper says whether this process was started to be a reaper. A main asks
// before anything else.
func IsReaper() bool { return os.Getenv(reaperVariable) == "1" }

// RunReaper is all that a reaper does: it notes the process groups of the children
// until the worker is gone, then kills them, their descendants and whatever
// carries the worker's cookie. After that it calls each of last, one after the other,
// with every note that was given to [Launcher.Remember]; by then the worker is gone or has closed
// its Launcher. It returns the exit code of the process.
func RunReaper(last ...func(note string)) int {
	// It must outlive every way in which a worker is asked to end.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGTSTP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE)
	debug.FreeOSMemory() // it will wait for days
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

// watchlist is what a reaper knows.
type watchlist struct {
	cookie string
	groups map[int]struct{}
	notes  []string
}

// read takes lines until the end of the input. A line that it does not
// understand is passed over: the rest is worth no less.
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
		case errors.Is(err, io.EOF): // half a line is no line
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

// kill ends everything. The family trees are read first, while they stand.
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
		eradicate(func(cookie []byte) bool {
			return len(cookie) > len(prefix) && string(cookie[:len(prefix)]) == prefix
		}, sweepLimit)
	}
}
