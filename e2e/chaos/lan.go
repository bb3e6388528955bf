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

// lan is a simulated network: each host sends its packets to it, and it decides whether and
// when they arrive. It supports only IPv4.
type lan struct {
	mu     sync.Mutex
	ports  map[address]*port
	wires  map[[2]address]path
	all    path // for hosts without another entry
	random *rand.Rand
	lost   int // packets that a wire dropped
	late   int // packets that a wire delayed
	wait   sync.WaitGroup
}

// address is the address of a host on the lan.
type address [4]byte

// String returns the address in dotted decimal.
func (a address) String() string { return netip.AddrFrom4(a).String() }

// path holds the properties of the path from one host to another. The zero value is a good path.
type path struct {
	cut  bool
	late time.Duration
	loss float64 // the share of dropped packets, from 0 to 1
}

// port connects a host.
type port struct {
	device io.ReadWriteCloser // one packet for each read and write
	queue  chan packet        // delayed packets, in order
}

type packet struct {
	bytes []byte
	due   time.Time
}

const (
	packetBytes = 64 << 10
	// queuePackets limits the packets that wait for one host. Further packets are dropped, as
	// by a real device with a full queue.
	queuePackets = 8192
)

func newLAN(seed uint64) *lan {
	return &lan{ports: map[address]*port{}, wires: map[[2]address]path{}, random: rand.New(rand.NewPCG(seed, 0x1a9))}
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

// close unplugs every host and waits until no packet is in transit.
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

// set sets the wire between two hosts, in both directions.
func (l *lan) set(a, b address, w path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, way := range [][2]address{{a, b}, {b, a}} {
		if l.wires[way] = w; w == (path{}) {
			delete(l.wires, way)
		}
	}
}

// setAll sets the wire between all hosts without another entry.
func (l *lan) setAll(w path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = w
}

// carry forwards the packets of a host to their destinations.
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

// deliver writes the packets for the host when they are due. A waiting packet
// delays those behind it, so packets keep their order.
func (p *port) deliver() {
	for next := range p.queue {
		if wait := time.Until(next.due); wait > 0 {
			time.Sleep(wait)
		}
		_, _ = p.device.Write(next.bytes) // the packet is lost if the host does not accept it
	}
}

// counts returns the numbers of dropped and delayed packets so far.
func (l *lan) counts() (lost, late int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.late
}
