package attach_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/callyard/callyard/internal/launch/attach"
)

// echoVariable makes the test program a process that returns the messages of a program.
const echoVariable = "CALLYARD_ATTACH_ECHO"

// echoPings is long, because the program is disconnected if this process, too, stands still for two periods.
const echoPings = 3 * time.Second

func serveEcho() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := attach.Accept(w, r, attach.Options{MaxMessage: 1 << 10, PingEvery: echoPings})
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			if c.KeepAlive(ctx) != nil {
				c.Abort()
			}
		}()
		for {
			text, err := c.Read()
			if err != nil {
				return
			}
			if c.Write(text, 0, []int{len(text)}) != nil {
				return
			}
		}
	}))
}

func TestAProgramStaysConnectedToAProcessThatWasStopped(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command(self)
	process.Env = append(os.Environ(), echoVariable+"=1")
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	ws, _, err := websocket.Dial(t.Context(), "ws://"+strings.TrimSpace(address), &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, Subprotocols: []string{attach.Subprotocol},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	echo := func(text string) {
		t.Helper()
		if err := ws.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := ws.Read(t.Context()); err != nil || string(got) != text {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	echo("before")
	if err := process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-time.After(2*echoPings + time.Second)
	if err := process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-time.After(echoPings / 8) // the program sends nothing at first
	echo("after")
}
