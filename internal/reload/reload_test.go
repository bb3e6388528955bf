package reload

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// file is a part whose version is its text. A text that starts with "bad" is refused.
type file struct {
	t    *testing.T
	path string
	log  bytes.Buffer
	now  string // the effective version
	r    *Reloader
	read func() // called in the middle of a read
}

func newFile(t *testing.T, text string) *file {
	f := &file{t: t, path: filepath.Join(t.TempDir(), "f"), now: text}
	f.write(text)
	f.r = New(slog.New(slog.NewTextHandler(&f.log, nil)), f.part(schema.PartPolicy))
	return f
}

func (f *file) part(name string) Part {
	return Part{Name: name, Files: []string{f.path}, Seen: StampOf(f.path), Version: f.now, Read: func() (Next, error) {
		raw, err := os.ReadFile(f.path)
		if f.read != nil {
			f.read()
		}
		if err != nil {
			return Next{}, err
		}
		text := string(raw)
		if strings.HasPrefix(text, "bad") {
			return Next{}, errors.New(text)
		}
		return Next{Version: text, Apply: func() { f.now = text }}, nil
	}}
}

func (f *file) write(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *file) is(want, wantError string) {
	f.t.Helper()
	state := f.r.State()[0]
	if f.now != want || state.Version != want || (wantError == "") != (state.Error == "") || !strings.Contains(state.Error, wantError) {
		f.t.Errorf("in force %q, said %+v; want %q %q", f.now, state, want, wantError)
	}
}

func TestEditIsAppliedOnceTheFileIsStable(t *testing.T) {
	f := newFile(t, "one")
	f.write("two")
	f.r.look()
	f.is("one", "") // it may be half an edit
	f.write("two and a half")
	f.r.look()
	f.is("one", "")
	f.r.look()
	f.is("two and a half", "")
	for range 3 {
		f.r.look()
	}
	if n := strings.Count(f.log.String(), "was reloaded"); n != 1 {
		t.Errorf("read %d times", n)
	}
}

func TestFileThatChangesDuringReadIsNotApplied(t *testing.T) {
	f := newFile(t, "one")
	f.write("two")
	f.read = func() { f.write("three"); f.read = nil }
	f.r.look()
	f.r.look()
	f.is("one", "")
	f.r.look()
	f.is("three", "")
}

func TestInvalidEditIsNotAppliedAndStaysReported(t *testing.T) {
	f := newFile(t, "one")
	since := f.r.State()[0].Since
	f.write("bad: line 3")
	for range 4 {
		f.r.look()
	}
	f.is("one", "bad: line 3")
	if n := strings.Count(f.log.String(), "was refused"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, f.log.String())
	}
	if s := f.r.State()[0]; !s.Since.Equal(since) || s.Tried.Before(since) {
		t.Errorf("%+v", s)
	}
	f.write("one") // undo the edit
	f.r.look()
	f.r.look()
	f.is("one", "")
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	f.r.look()
	f.is("one", "") // in the middle of a replacement
	f.r.look()
	f.is("one", "no such file")
}

// TestReplacedSymlinkIsDetected does the same as the kubelet with a ConfigMap: the file is a
// link into a folder that is itself a link, which is replaced.
func TestReplacedSymlinkIsDetected(t *testing.T) {
	dir := t.TempDir()
	version := func(name, text string) {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "f"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(name, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..1", "one")
	f := &file{t: t, path: filepath.Join(dir, "f"), now: "one"}
	if err := os.Symlink("..data/f", f.path); err != nil {
		t.Fatal(err)
	}
	f.r = New(slog.New(slog.NewTextHandler(&f.log, nil)), f.part(schema.PartPolicy))
	f.r.look()
	version("..2", "two")
	f.r.look()
	f.r.look()
	f.is("two", "")
}

func TestEditWithTheSameTimeAndSizeIsDetected(t *testing.T) {
	f := newFile(t, "one")
	at := time.Now()
	if err := os.Chtimes(f.path, at, at); err != nil {
		t.Fatal(err)
	}
	f.r.look()
	f.write("two")
	if err := os.Chtimes(f.path, at, at); err != nil {
		t.Fatal(err)
	}
	f.r.look()
	f.r.look()
	f.is("two", "")
}

func TestRefusedPartIsRetriedAfterAnotherChanges(t *testing.T) {
	one, two := newFile(t, "one"), newFile(t, "two")
	needs := one.part(schema.PartPolicy)
	read := needs.Read
	needs.Read = func() (Next, error) {
		if two.now != "ready" {
			return Next{}, errors.New("a group without members")
		}
		return read()
	}
	r := New(slog.New(slog.DiscardHandler), needs, two.part(schema.PartKeys))
	one.write("changed")
	r.look()
	r.look()
	if r.State()[0].Error == "" {
		t.Fatal("it was taken too early")
	}
	two.write("ready")
	r.look()
	r.look()
	if s := r.State()[0]; s.Error != "" || one.now != "changed" {
		t.Errorf("%+v %q", s, one.now)
	}
}

func TestSignalReloadsAllParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFile(t, "one")
		ctx, cancel := context.WithCancel(t.Context())
		again, done := make(chan os.Signal, 1), make(chan struct{})
		go func() { defer close(done); f.r.Run(ctx, again) }()
		time.Sleep(10 * Every)
		before := f.r.State()[0].Tried
		again <- os.Interrupt
		synctest.Wait()
		if now := f.r.State()[0].Tried; !now.After(before) {
			t.Errorf("tried at %v, before %v", now, before)
		}
		cancel()
		<-done
	})
}

func TestReportedErrorTextIsBounded(t *testing.T) {
	text := shortly([]string{"a.", "", strings.Repeat("ä", 1000), "c.", "d.", "e."})
	if len(text) > 2000 || !strings.HasSuffix(text, "(and 2 more; the log has all)") || strings.Contains(text, "d.") {
		t.Error(text)
	}
}
