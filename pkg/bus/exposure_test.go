package bus_test

import (
	"bufio"
	"net"
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
		got, err := bus.Exposures(t.Context(), "nats://"+want.Address)
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v, %v, want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{"HTTP/1.1 400 Bad Request\r\n", "INFO nothing\r\n", "INFO " + strings.Repeat("x", 1<<17), "\n"} {
		if _, err := bus.Exposures(t.Context(), lineServer(t, line)); err == nil {
			t.Errorf("%.20q is taken for a NATS server", line)
		}
	}
	if _, err := bus.Exposures(t.Context(), ""); err == nil {
		t.Error("no address is taken for a NATS server")
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
		got, err := bus.Exposures(t.Context(), strings.Replace(s.ClientURL(), "0.0.0.0", "127.0.0.1", 1))
		if err != nil || len(got) != 1 || got[0].Credential || got[0].Beyond != want {
			t.Errorf("on %s: %+v, %v", host, got, err)
		}
	}
}
