package chaos

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testHost is a host of a test, with its sent and received packets.
type testHost struct {
	sends   chan []byte
	arrives chan []byte
	ends    chan struct{}
}

func newTestHost(l *lan, at address) *testHost {
	p := &testHost{sends: make(chan []byte), arrives: make(chan []byte, 100), ends: make(chan struct{})}
	l.plug(at, p)
	return p
}

func (p *testHost) Read(b []byte) (int, error) {
	select {
	case text := <-p.sends:
		return copy(b, text), nil
	case <-p.ends:
		return 0, io.EOF
	}
}

func (p *testHost) Write(b []byte) (int, error) {
	p.arrives <- append([]byte(nil), b...)
	return len(b), nil
}

func (p *testHost) Close() error {
	close(p.ends)
	return nil
}

// ip returns a packet with one byte of payload.
func ip(from, to address, text byte) []byte {
	b := make([]byte, 21)
	b[0], b[3], b[20] = 0x45, 21, text
	copy(b[12:], from[:])
	copy(b[16:], to[:])
	return b
}

func (p *testHost) texts() (got []byte) {
	for len(p.arrives) > 0 {
		got = append(got, (<-p.arrives)[20])
	}
	return got
}

func TestPacketsFollowTheStateOfTheirLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(1)
		one, two, three := address{10, 0, 0, 1}, address{10, 0, 0, 2}, address{10, 0, 0, 3}
		a, b, c := newTestHost(l, one), newTestHost(l, two), newTestHost(l, three)
		defer func() {
			if err := l.close(); err != nil {
				t.Error(err)
			}
		}()
		arrived := func(at *testHost, want string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, string(at.texts())); diff != "" {
				t.Errorf("(-want +arrived)\n%s", diff)
			}
		}
		a.sends <- ip(one, two, 'x')
		arrived(b, "x")

		l.set(one, two, path{cut: true})
		a.sends <- ip(one, two, 'x')
		b.sends <- ip(two, one, 'x')
		a.sends <- ip(one, three, 'y')
		arrived(b, "")
		arrived(a, "")
		arrived(c, "y")

		l.set(one, two, path{})
		l.setAll(path{late: time.Second})
		a.sends <- ip(one, two, '1')
		a.sends <- ip(one, two, '2')
		arrived(b, "")
		time.Sleep(time.Second)
		arrived(b, "12")

		l.setAll(path{loss: 1})
		a.sends <- ip(one, two, 'x')
		arrived(b, "")
		if lost, late := l.counts(); lost != 3 || late != 2 {
			t.Errorf("%d packets were lost and %d late", lost, late)
		}
		l.setAll(path{})
		a.sends <- []byte{0x60, 0, 0} // not IPv4
		a.sends <- ip(one, address{10, 0, 0, 9}, 'x')
		a.sends <- ip(one, two, 'z')
		arrived(b, "z")
	})
}
