package bus_test

import (
	"bufio"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/callyard/callyard/pkg/bus"
)

// lineServer is a server that sends one line to each client.
func lineServer(t *testing.T, line string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(line))
			_, _ = bufio.NewReader(c).ReadByte() // until the other side is done
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

func TestExposureIsReadFromTheServerInfo(t *testing.T) {
	for line, want := range map[string]bus.Exposure{
		`INFO {"host":"127.0.0.1"}`:                          {},
		`INFO {"host":"::1","auth_required":true}`:           {Credential: true},
		`INFO {"host":"0.0.0.0"}`:                            {Beyond: true},
		`INFO {"host":"::"}`:                                 {Beyond: true},
		`INFO {"host":"nats.example.com"}`:                   {Beyond: true},
		`INFO {"host":"0.0.0.0","auth_required":true}`:       {Credential: true, Beyond: true},
		`INFO {"host":"0.0.0.0","tls_verify":true}`:          {Credential: true, Beyond: true},
		`INFO {"host":"localhost","connect_urls":["a","b"]}`: {},
	} {
		want.Address = lineServer(t, line+"\r\n")
		if got := bus.Exposures(t.Context(), "nats://"+want.Address); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
	for _, line := range []string{"HTTP/1.1 400 Bad Request\r\n", "INFO nothing\r\n", "INFO " + strings.Repeat("x", 1<<17), "\n"} {
		if got := bus.Exposures(t.Context(), lineServer(t, line)); got[0].Err == nil || errors.Is(got[0].Err, bus.ErrSilent) {
			t.Errorf("%.20q is taken for a NATS server", line)
		}
	}
	if got := bus.Exposures(t.Context(), ""); got[0].Err == nil {
		t.Error("no address is taken for a NATS server")
	}
}

// A server that does not respond does not hide the state of the others.
func TestAServerThatIsSilentIsToldFromOneThatUsesTLSFirst(t *testing.T) {
	withTLS := httptest.NewUnstartedServer(http.NotFoundHandler())
	withTLS.Config.ErrorLog = log.New(io.Discard, "", 0)
	withTLS.StartTLS()
	t.Cleanup(withTLS.Close)
	stopped, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections for a stopped process
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopped.Close() })
	silent, tlsFirst, well := stopped.Addr().String(), withTLS.Listener.Addr().String(), lineServer(t, `INFO {"host":"127.0.0.1"}`+"\r\n")
	got := bus.Exposures(t.Context(), silent+","+tlsFirst+","+well)
	if len(got) != 3 || got[0].Address != silent || got[1].Address != tlsFirst || got[2].Address != well {
		t.Fatalf("%+v", got)
	}
	if !errors.Is(got[0].Err, bus.ErrSilent) {
		t.Errorf("the silent server: %v", got[0].Err)
	}
	if err := got[1].Err; err == nil || errors.Is(err, bus.ErrSilent) {
		t.Errorf("the server with TLS: %v", err)
	}
	if got[2].Err != nil {
		t.Errorf("the server that responds: %v", got[2].Err)
	}
}

func TestExposureOfARealServer(t *testing.T) {
	for host, want := range map[string]bool{"127.0.0.1": false, "0.0.0.0": true} {
		s, err := server.NewServer(&server.Options{Host: host, Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
		if !s.ReadyForConnections(10 * time.Second) {
			t.Fatal("the server is not ready")
		}
		got := bus.Exposures(t.Context(), strings.Replace(s.ClientURL(), "0.0.0.0", "127.0.0.1", 1))
		if len(got) != 1 || got[0].Err != nil || got[0].Credential || got[0].Beyond != want {
			t.Errorf("on %s: %+v", host, got)
		}
	}
}
