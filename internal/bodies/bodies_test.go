package bodies

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBodyIsReadUnchanged(t *testing.T) {
	r := New(1<<20, 8<<20)
	for _, n := range []int{0, 1, first - 1, first, first + 1, maxSmall - 1, maxSmall, maxSmall + 1, 1<<20 - 1, 1 << 20} {
		body := bytes.Repeat([]byte("0123456"), n/7+1)[:n]
		for _, length := range []int64{int64(n), -1} {
			for _, from := range []io.Reader{bytes.NewReader(body), iotest.DataErrReader(bytes.NewReader(body)), iotest.HalfReader(bytes.NewReader(body))} {
				var l Reservation
				got, err := r.Read(&l, from, length, 1<<20)
				if err != nil || !bytes.Equal(got, body) {
					t.Errorf("%d bytes, %d announced: %d bytes, %v", n, length, len(got), err)
				}
				l.Release()
				l.Release()
			}
		}
	}
	if small, large := r.Left(); small != 1<<20 || large != 8<<20 {
		t.Errorf("%d and %d are left", small, large)
	}
}

func TestBodiesOfWrongLengthAreRefused(t *testing.T) {
	r := New(1<<20, 1<<20)
	for _, c := range []struct {
		body   string
		length int64
		limit  int
		want   error
	}{
		{"abcd", 4, 3, ErrTooLong}, {"abcd", -1, 3, ErrTooLong}, {"abc", -1, 3, nil}, {"abc", 3, 3, nil}, {"abc", 4, 9, io.ErrUnexpectedEOF}, {"", 0, 0, nil}, {"", -1, 0, nil}, {"a", -1, 0, ErrTooLong},
		{strings.Repeat("x", 1<<19), -1, 1<<19 - 1, ErrTooLong},
	} {
		var l Reservation
		if _, err := r.Read(&l, strings.NewReader(c.body), c.length, c.limit); !errors.Is(err, c.want) {
			t.Errorf("%d bytes, %d announced, at most %d: %v, want %v", len(c.body), c.length, c.limit, err, c.want)
		}
		l.Release()
	}
	var l Reservation
	if _, err := r.Read(&l, iotest.ErrReader(io.ErrClosedPipe), -1, 9); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

func TestAnnouncedBytesReserveLittleMemory(t *testing.T) {
	r := New(maxSmall, 64<<20)
	announced, came := io.Pipe()
	var l Reservation
	done := make(chan error, 1)
	go func() {
		_, err := r.Read(&l, announced, 64<<20, 64<<20)
		done <- err
	}()
	if _, err := came.Write(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if small, large := r.Left(); small != maxSmall-first || large != 64<<20 {
		t.Errorf("10 bytes take %d and %d", maxSmall-small, 64<<20-large)
	}
	_ = came.Close()
	if err := <-done; !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestLargeBodiesDoNotUseTheReserveOfSmallOnes(t *testing.T) {
	r := New(10*maxSmall, 1<<20)
	var large, another, small Reservation
	if _, err := r.Read(&large, bytes.NewReader(make([]byte, 1<<20)), 1<<20, 8<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(&another, bytes.NewReader(make([]byte, 1<<20)), -1, 8<<20); !errors.Is(err, ErrFull) {
		t.Errorf("a second large body: %v", err)
	}
	another.Release()
	for range 5 {
		if _, err := r.Read(&small, bytes.NewReader(make([]byte, 1000)), 1000, 8<<20); err != nil {
			t.Errorf("a small one next to it: %v", err)
		}
		small.Release()
	}
	large.Release()
	if small, large := r.Left(); small != 10*maxSmall || large != 1<<20 {
		t.Errorf("%d and %d are left", small, large)
	}
}

func TestNoCallerUsesTheMemoryOfOthers(t *testing.T) {
	who := func(name, tenant string) *schema.Principal {
		return &schema.Principal{Name: name, Tenant: schema.TenantID(tenant)}
	}
	for _, c := range []struct {
		name          string
		hog, also, of *schema.Principal
	}{
		{"a principal", who("ada", ""), who("ada", "default"), who("bob", "")},
		{"a tenant", who("acme/ada", "acme"), who("acme/eve", "acme"), who("bob", "umbrella")},
	} {
		for _, size := range []int{first, maxSmall, 3 * maxSmall} {
			b := New(16*maxSmall, 16*maxSmall)
			var all []*Reservation
			grow := func(p *schema.Principal) bool {
				r := new(Reservation)
				r.By(p)
				all = append(all, r)
				return r.Grow(b, size)
			}
			for grow(c.hog) {
			}
			if grow(c.also) {
				t.Errorf("%s, bodies of %d bytes: more than its part", c.name, size)
			}
			if !grow(c.of) {
				t.Errorf("%s, bodies of %d bytes: nothing is left for another", c.name, size)
			}
			for _, r := range all {
				r.Release()
			}
			if small, large := b.Left(); small != 16*maxSmall || large != 16*maxSmall || len(b.by) != 0 {
				t.Errorf("%s: %d and %d are left, and %v is used", c.name, small, large, b.by)
			}
		}
	}
}

func TestMemoryNeverExceedsTheBudget(t *testing.T) {
	const all = 1 << 20
	r := New(all, all)
	var held atomic.Int64
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			chance := rand.New(rand.NewPCG(uint64(i), 1))
			for range 2000 {
				var l Reservation
				mine := int64(0)
				for range 3 {
					if l.Grow(r, chance.IntN(all/2)) {
						held.Add(l.held.large - mine)
						mine = l.held.large
					}
					if n := held.Load(); n > all {
						t.Errorf("%d bytes are held", n)
					}
				}
				held.Add(-mine)
				l.Release()
			}
		})
	}
	wait.Wait()
	if small, large := r.Left(); small != all || large != all {
		t.Errorf("%d and %d are left", small, large)
	}
}

func FuzzBodyIsCompleteOrRefused(f *testing.F) {
	f.Add([]byte("abc"), int64(3), 5)
	f.Add([]byte(""), int64(-1), 0)
	f.Add([]byte("abcdef"), int64(-1), 3)
	f.Fuzz(func(t *testing.T, body []byte, length int64, limit int) {
		limit = min(max(limit, 0), 1<<20)
		length = max(length, -1)
		r := New(1<<20, 1<<20)
		var l Reservation
		got, err := r.Read(&l, bytes.NewReader(body), length, limit)
		want := body
		if length >= 0 && int64(len(body)) > length {
			want = body[:length]
		}
		if err == nil && !bytes.Equal(got, want) || err == nil && len(got) > limit {
			t.Fatalf("%q of %d, at most %d, is %q", body, length, limit, got)
		}
		l.Release()
		if small, large := r.Left(); small != 1<<20 || large != 1<<20 {
			t.Fatalf("%d and %d are left", small, large)
		}
	})
}
