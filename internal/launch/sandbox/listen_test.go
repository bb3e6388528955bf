package sandbox

import (
	"net"
	"sync"
)

// deafListener takes connections and never answers.
type deafListener struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
	done  chan struct{}
}

func listenUnix(path string) (*deafListener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	d := &deafListener{Listener: l, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			d.mu.Lock()
			d.conns = append(d.conns, conn)
			d.mu.Unlock()
		}
	}()
	return d, nil
}

func (d *deafListener) Close() error {
	err := d.Listener.Close()
	<-d.done
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		conn.Close()
	}
	return err
}
