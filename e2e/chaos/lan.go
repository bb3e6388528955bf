package chaos

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"
)

// lan is a network of our own: each host sends its packets here, and what arrives
// where, and when, is ours to say. It carries IPv4 and nothing else.
type lan struct {
	mu     sync.Mutex
	ports  map[address]*port
	wires  map[[2]address]wire
	all    wire // of those that are in no other way bad
	random *rand.Rand
	lost   int // packets that did not arrive because of a wire
	late   int // packets that were held back
	wait   sync.WaitGroup
}

// address is where a host is on the lan.
type address [4]byte

// String is the address as people write it.
func (a address) String() string { return netip.AddrFrom4(a).String() }

// wire is how packets travel from one host to another. The zero value is a good one.
type wire struct {
	cut  bool
	late time.Duration
	loss float64 // the share of packets that do not arrive, from 0 to 1
}

// port is where a host is plugged in.
type port struct {
	device io.ReadWriteCloser // one packet for each read and write
	queue  chan packet        // what is held back, in its order
}

type packet struct {
	bytes []byte
	due   time.Time
}

const (
	packetBytes = 64 << 10
	// queuePackets is what waits at most for one host; the rest is lost, as it is
	// when the queue of a real device is full.
	queuePackets = 8192
)

func newLAN(seed uint64) *lan {
	return &lan{ports: map[address]*port{}, wires: map[[2]address]wire{}, random: rand.New(rand.NewPCG(seed, 0x1a9))}
}

// plug adds a host, whose device ends with the lan.
func (l *lan) plug(at address, device io.ReadWriteCloser) {
	p := &port{device: device, queue: make(chan packet, queuePackets)}
	l.mu.Lock()
	l.ports[at] = p
	l.mu.Unlock()
	l.wait.Go(func() { l.carry(p) })
	l.wait.Go(p.deliver)
}

// close unplugs every host and waits until nothing is on its way.
func (l *lan) close() error {
	l.mu.Lock()
	var errs []error
	for _, p := range l.ports {
		errs = append(errs, p.device.Close())
		close(p.queue)
	}
	l.ports = map[address]*port{}
	l.mu.Unlock()
	l.wait.Wait()
	return errors.Join(errs...)
}

// set says how packets travel between two hosts, both ways.
func (l *lan) set(a, b address, w wire) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, way := range [][2]address{{a, b}, {b, a}} {
		if l.wires[way] = w; w == (wire{}) {
			delete(l.wires, way)
		}
	}
}

// setAll says how packets travel between all hosts of which nothing else is said.
func (l *lan) setAll(w wire) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = w
}

// carry takes what a host sends to where it is for.
func (l *lan) carry(from *port) {
	buffer := make([]byte, packetBytes)
	for {
		n, err := from.device.Read(buffer)
		if err != nil {
			return // it was unplugged
		}
		l.forward(buffer[:n])
	}
}

func (l *lan) forward(b []byte) {
	if len(b) < 20 || b[0]>>4 != 4 || int(binary.BigEndian.Uint16(b[2:])) > len(b) {
		return
	}
	from, to := address(b[12:16]), address(b[16:20])
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.ports[to]
	if p == nil {
		return
	}
	w, own := l.wires[[2]address{from, to}]
	if !own {
		w = l.all
	}
	if w.cut || w.loss > 0 && l.random.Float64() < w.loss {
		l.lost++
		return
	}
	if w.late > 0 {
		l.late++
	}
	select {
	case p.queue <- packet{append([]byte(nil), b...), time.Now().Add(w.late)}:
	default:
		l.lost++
	}
}

// deliver writes to the host what is for it, each packet when it is due. One that
// waits holds up those behind it: packets keep their order.
func (p *port) deliver() {
	for next := range p.queue {
		if wait := time.Until(next.due); wait > 0 {
			time.Sleep(wait)
		}
		_, _ = p.device.Write(next.bytes) // a host that takes nothing has lost it
	}
}

// counts is how many packets were lost and held back by now.
func (l *lan) counts() (lost, late int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.late
}
