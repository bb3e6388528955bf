package batchfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fullLines returns the lines of a text that are not blank.
func fullLines(text []byte) (all []string) {
	for line := range bytes.Lines(text) {
		if s := string(bytes.TrimSpace(line)); s != "" {
			all = append(all, s)
		}
	}
	return all
}

func FuzzPiecesGiveEveryLineOnce(f *testing.F) {
	f.Add([]byte("a\nb\n\n \nc"), uint8(1), uint16(4), uint8(2))
	f.Add([]byte("\r\n\r\na\r\n"), uint8(3), uint16(1), uint8(0))
	f.Add(bytes.Repeat([]byte(strings.Repeat("x", 300)+"\n\n"), 40), uint8(7), uint16(900), uint8(13))
	f.Add([]byte(" \n\t\n"), uint8(1), uint16(1), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, lines uint8, most uint16, back uint8) {
		want := fullLines(text)
		path := filepath.Join(t.TempDir(), "calls")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for name, o := range map[string]*Options{"file": {Calls: path}, "pipe": {Pipe: bytes.NewReader(text)}} {
			in, err := openInput(o)
			if err != nil {
				t.Fatal(err)
			}
			defer in.close()
			var got []string
			for first := true; ; {
				p, err := in.piece(t.Context(), uint64(lines)+1, int64(most)+1)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(p.body)
				if err != nil || int64(len(body)) != p.length || p.from != uint64(len(got)) || p.lines != uint64(len(fullLines(body))) {
					t.Fatalf("%s: %+v of %d bytes after %d lines: %v", name, p, len(body), len(got), err)
				}
				if first {
					// The front door stored only a part of it, so the rest is sent again.
					first = false
					kept := uint64(back) % (p.lines + 1)
					if err := in.seek(t.Context(), p.from+kept); err != nil {
						t.Fatal(err)
					}
					got = append(got, fullLines(body)[:kept]...)
					continue
				}
				got = append(got, fullLines(body)...)
			}
			if !slices.Equal(want, got) {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
			if err := in.seek(t.Context(), uint64(len(want))+1); err == nil {
				t.Errorf("%s has a line behind its last", name)
			}
		}
	})
}

func TestSlowPipeIsSentWithoutBuffering(t *testing.T) {
	from, to := io.Pipe()
	first := make(chan struct{})
	go func() {
		_, _ = io.WriteString(to, strings.Repeat("x", digestedMostPipe)+"\n")
		<-first
		_, _ = io.WriteString(to, "last\n")
		_ = to.Close()
	}()
	in, err := openInput(&Options{Pipe: from})
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	p, err := in.piece(t.Context(), 100, 1<<20)
	if err != nil || p.lines != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	close(first)
	if p, err = in.piece(t.Context(), 100, 1<<20); err != nil || p.from != 1 || p.lines != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
}
