package frontdoortest

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Benchmark sends a request over one connection with a client of negligible cost, so that it measures
// the server. It also reports the processor time.
func Benchmark(b *testing.B, address string, request []byte) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	b.ReportAllocs()
	began := cpu()
	for b.Loop() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		length := 0
		for first := true; ; first = false {
			line, err := in.ReadSlice('\n')
			if err != nil {
				b.Fatal(err)
			}
			if first && !strings.HasPrefix(string(line), "HTTP/1.1 200") {
				b.Fatalf("%s", line)
			}
			if len(line) == 2 {
				break
			}
			if strings.HasPrefix(string(line), "Content-Length: ") {
				_, _ = fmt.Sscan(string(line[16:]), &length)
			}
		}
		if _, err := in.Discard(length); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpu()-began).Microseconds())/float64(b.N), "cpu-µs/op")
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
