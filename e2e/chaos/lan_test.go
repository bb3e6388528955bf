package chaos

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// plugged is a host of a test, with its sent and received packets.
type plugged struct {
	sends   chan []byte
	arrives chan []byte
	ends    chan struct{}
}

func plugIn(l *lan, at address) *plugged {
	p := &plugged{sends: make(chan []byte), arrives: make(chan []byte, 100), ends: make(chan struct{})}
	l.plug(at, p)
	return p
}

func (p *plugged) Read(b []byte) (int, error) {
	select {
	case text := <-p.sends:
		return copy(b, text), nil
	case <-p.ends:
		return 0, io.EOF
	}
}

func (p *plugged) Write(b []byte) (int, error) {
	p.arrives <- append([]byte(nil), b...)
	return len(b), nil
}

func (p *plugged) Close() error {
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

func (p *plugged) texts() (got []byte) {
	for len(p.arrives) > 0 {
		got = append(got, (<-p.arrives)[20])
	}
	return got
}

func TestPacketsFollowTheStateOfTheirLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(1)
		one, two, three := address{10, 0, 0, 1}, address{10, 0, 0, 2}, address{10, 0, 0, 3}
		a, b, c := plugIn(l, one), plugIn(l, two), plugIn(l, three)
		defer func() {
			if err := l.close(); err != nil {
				t.Error(err)
			}
		}()
		arrived := func(at *plugged, want string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, string(at.texts())); diff != "" {
				t.Errorf("(-want +arrived)\n%s", diff)
			}
		}
		a.sends <- ip(one, two, 'x')
		arrived(b, "x")

		l.set(one, two, wire{cut: true})
		a.sends <- ip(one, two, 'x')
		b.sends <- ip(two, one, 'x')
		a.sends <- ip(one, three, 'y')
		arrived(b, "")
		arrived(a, "")
		arrived(c, "y")

		l.set(one, two, wire{})
		l.setAll(wire{late: time.Second})
		a.sends <- ip(one, two, '1')
		a.sends <- ip(one, two, '2')
		arrived(b, "")
		time.Sleep(time.Second)
		arrived(b, "12")

		l.setAll(wire{loss: 1})
		a.sends <- ip(one, two, 'x')
		arrived(b, "")
		if lost, late := l.counts(); lost != 3 || late != 2 {
			t.Errorf("%d packets were lost and %d late", lost, late)
		}
		l.setAll(wire{})
		a.sends <- []byte{0x60, 0, 0} // not IPv4
		a.sends <- ip(one, address{10, 0, 0, 9}, 'x')
		a.sends <- ip(one, two, 'z')
		arrived(b, "z")
	})
}
