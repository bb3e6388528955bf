package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// startTunnel is a forwarder and the tunnel at the other end of its pipes.
func startTunnel(t *testing.T) (t2 *Tunnel, address string, forwarder <-chan error) {
	t.Helper()
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- RunForwarder(l, inRead, outWrite) }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tunnel, err := OpenTunnel(ctx, inWrite, outRead)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tunnel.Close() })
	return tunnel, l.Addr().String(), ended
}

func TestConnectionsShareOnePairOfPipes(t *testing.T) {
	tunnel, address, _ := startTunnel(t)
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := tunnel.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
				return
			}
			served.Go(func() { // an echo that waits for all of it
				defer conn.Close()
				got := make([]byte, 1<<18)
				if _, err := io.ReadFull(conn, got); err != nil {
					t.Error(err)
					return
				}
				_, _ = conn.Write(got) // the slow one does not read it; what is missing of others is seen there
			})
		}
	})
	// One that nobody reads must not hold up the others.
	slow, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range mostOpen * 2 { // more than there are streams
		all.Go(func() {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			want := bytes.Repeat(fmt.Appendf(nil, "%7d\n", i), 1<<18/8)
			all.Go(func() {
				if _, err := conn.Write(want); err != nil {
					t.Error(err)
				}
			})
			if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, want) {
				t.Errorf("connection %d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	all.Wait()
	slow.Close()
	tunnel.Close()
	served.Wait()
}

func TestAForwarderEndsWithItsWorker(t *testing.T) {
	tunnel, address, forwarder := startTunnel(t)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ours, err := tunnel.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	tunnel.Close()
	select {
	case err := <-forwarder:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the forwarder goes on")
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Logf("its connection ended with %v", err)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("it still listens")
	}
}

func TestOpenTunnelStopsWhenItsContextIsCanceled(t *testing.T) {
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer inRead.Close()
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenTunnel(ctx, inWrite, outRead); !errors.Is(err, context.Canceled) {
		t.Errorf("it is opened with %v", err)
	}
	outWrite.Close()
}
