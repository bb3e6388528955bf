package launch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/kit/truncate"
)

func TestProgramOutputIsSanitized(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä 漢 🙂\n\tx":                      "plain ä 漢 🙂\n\tx",
		"\x1b[1;31mred\x1b[0m":                  "red",
		"\x1b]0;title\x07text":                  "text",
		"\x1b[31":                               `\x1b[31`,
		"a\r\nb\x00\x07\x7f\u0085":              "a\nb\\x00\\x07\\x7f\\x85",
		"\u202Eevil\u200B\u2028":                `\u202eevil\u200b\u2028`,
		"\U000E0041tag":                         `\U000e0041tag`,
		"bad \xff\xc3":                          "bad \uFFFD\uFFFD",
		"\x1b[" + strings.Repeat("1", 80) + "m": `\x1b[` + strings.Repeat("1", 80) + "m",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\xff\u202e\r\n")
	f.Add("\x1b]0;a\x07\x1b")
	f.Fuzz(func(t *testing.T, in string) {
		out := clean(in)
		if !utf8.ValidString(out) {
			t.Fatalf("not UTF-8: %q", out)
		}
		for _, r := range out {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
				t.Fatalf("%q is left in %q", r, out)
			}
		}
		if again := clean(out); again != out {
			t.Fatalf("%q became %q", out, again)
		}
	})
}

func TestConfiguredValuesAreRedactedInTheTail(t *testing.T) {
	env := map[string]string{"KEY": "secret-1234", "LONG": "secret-1234-and-more", "FLAG": "true"}
	r := newRedactor(env)
	got := r.redact("secret-1234-and-more, secret-1234, true")
	if want := "[value of LONG], [value of KEY], true"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	// A key file comes line by line.
	pem := newRedactor(map[string]string{"PEM": "-----BEGIN\nMIIEvAIBADAN\n-----END K"})
	if got, want := pem.redact("x MIIEvAIBADAN y"), "x [value of PEM] y"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	// At every place where the tail may begin, also when redacting shortens it.
	for pad := range 64 {
		tl := newTail(quiet(), env)
		tl.add([]byte(strings.Repeat("x", 100) + "secret-1234-and-more" + strings.Repeat("y", tailSize-32+pad)))
		if text := tl.String(); strings.Contains(text, "cret") || strings.Contains(text, "-more") {
			t.Fatalf("at %d: %q", pad, text[:40])
		}
	}
	long := "0123456789" + strings.Repeat("abcdefghijklmnopqrstuvwxyz", 60)
	for pad := range 100 {
		tl := newTail(quiet(), map[string]string{"LONG": long})
		tl.add([]byte(strings.Repeat(long, 8) + strings.Repeat(".", 16*pad)))
		if text := tl.String(); strings.Contains(text, "xyz") {
			t.Fatalf("at %d: %q", pad, text)
		}
	}
}

func TestTailIsTheEndOfTheOutputForAnyChunks(t *testing.T) {
	var all strings.Builder
	tl := newTail(quiet(), nil)
	for i := range 5000 {
		line := fmt.Sprintf("%d é\n", i)
		all.WriteString(line)
		tl.add([]byte(line))
		want := all.String()
		if len(want) > tailSize {
			want = truncate.Tail(want, tailSize)
		}
		if i%97 == 0 && tl.String() != want {
			t.Fatalf("after %d lines: %s", i, cmp.Diff(want, tl.String()))
		}
	}
	if got := cap(tl.buf); got > 8*tailSize {
		t.Errorf("%d bytes are kept", got)
	}
}

// lines is a log handler that keeps what it is given.
type lines struct {
	slog.Handler
	got []string
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	l.got = append(l.got, text)
	return nil
}

func TestNoPartOfAConfiguredValueIsLogged(t *testing.T) {
	long := strings.Repeat("abcdefghijklmnopqrstuvwxyz", 100)
	for pad := range 40 {
		var log lines
		tl := newTail(slog.New(&log), map[string]string{"LONG": long})
		tl.drain(strings.NewReader(strings.Repeat(".", 16*pad) + strings.Repeat(long, 3) + "\nend\n"))
		if len(log.got) != 2 || strings.Contains(strings.Join(log.got, "\n"), "abc") {
			t.Fatalf("at %d: %q", pad, log.got)
		}
	}
}

func TestServerOutputIsLoggedAtALimitedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		tl := newTail(slog.New(&log), map[string]string{"KEY": "secret-1234"})
		r, w := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			tl.drain(r)
		}()
		fmt.Fprint(w, strings.Repeat("one\n\n", 70))
		time.Sleep(time.Second) // in the bubble: the next second begins at once
		fmt.Fprint(w, "two\n")
		fmt.Fprint(w, strings.Repeat("l", 5000)+"\nsecret-1234 at the end")
		w.Close()
		<-done

		want := append(slices.Repeat([]string{"stderr line=one"}, 50),
			"stderr lines not logged lines=20", "stderr line=two",
			"stderr line="+strings.Repeat("l", loggedLine), "stderr line=[value of KEY] at the end")
		if diff := cmp.Diff(want, log.got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReaperProtocolLines(t *testing.T) {
	if got, want := cookieLine("ab")+addLine(17)+removeLine(17), "=ab\n+17\n-17\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	list := watchlist{groups: make(map[int]struct{})}
	input := "=cafe\n+17\n+18\n-17\n\n+1\n+0\n+-5\n++6\n-x\n?9\n" + strings.Repeat("z", 9000) + "+44\n+19\n+20"
	if err := list.read(strings.NewReader(input)); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(list.groups)); list.cookie != "cafe" || !slices.Equal(got, []int{18, 19}) {
		t.Errorf("cookie %q, groups %v", list.cookie, got)
	}
}

func FuzzReaperInput(f *testing.F) {
	f.Add([]byte("=c\n+17\n-17\n+1\n+-1\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		list := watchlist{groups: make(map[int]struct{})}
		if err := list.read(bytes.NewReader(input)); err != nil {
			t.Fatal(err)
		}
		for pgid := range list.groups {
			if pgid <= 1 {
				t.Fatalf("would kill group %d", pgid)
			}
		}
	})
}

func TestProgramThatDoesNotBecomeAReaperIsReported(t *testing.T) {
	for word, want := range map[string]string{"": "does main call", "PASS\nok": "main must call launch.RunReaper"} {
		ready, output, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := output.WriteString(word); err != nil {
			t.Fatal(err)
		}
		output.Close()
		if err := startReading(ready, nil, "c"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("after %q: %v", word, err)
		}
		ready.Close()
	}
}

func TestOnlyTheExactCookieCounts(t *testing.T) {
	is := func(want string) func([]byte) bool { return func(c []byte) bool { return string(c) == want } }
	for environ, want := range map[string]bool{
		"CALLYARD_COOKIE=ab.1\x00":                      true,
		"A=1\x00CALLYARD_COOKIE=ab.1":                   true,
		"CALLYARD_COOKIE=x\x00CALLYARD_COOKIE=ab.1\x00": true,
		"CALLYARD_COOKIE=ab.12\x00":                     false,
		"XCALLYARD_COOKIE=ab.1\x00":                     false,
		"A=CALLYARD_COOKIE=ab.1\x00":                    false,
		"":                                              false,
	} {
		if got := carries([]byte(environ), is("ab.1")); got != want {
			t.Errorf("%q: %v", environ, got)
		}
	}
}
