package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/internal/waits"
)

// boundsSize is the size of the load.
type boundsSize struct {
	held, heldBytes int
	badBytes        int
	polls, streams  int
	calls           int // honest calls, before and during; enough for several garbage collections
	settle          time.Duration
	timed           bool // figures must meet the limits of docs/reference/limits.md
}

// bounds returns the size for the machine that runs the tests. CALLYARD_BOUNDS=full selects
// the promises of docs/reference/limits.md, whose figures need an idle machine.
func bounds() boundsSize {
	if os.Getenv("CALLYARD_BOUNDS") == "full" {
		return boundsSize{held: 10_000, heldBytes: 1_000_000, badBytes: 12 << 20, polls: 10_000, streams: 1500, calls: 40000, settle: 20 * time.Second, timed: true}
	}
	return boundsSize{held: 60, heldBytes: 100_000, badBytes: 256 << 10, polls: 200, streams: 50, calls: 200}
}

// overloadedFleet is a fleet that many callers overload.
type overloadedFleet struct {
	*door
	t    *testing.T
	size boundsSize
	data []string // folders
	all  map[string]*process
	// began is the time when the fleet was opened.
	began time.Time
}

const boundsCallers = 8

func boundsKey(n int) string { return fmt.Sprintf("cyk_bounds-%d-%s", n, strings.Repeat("k", 40)) }

func bearer(n int) string { return "Authorization: Bearer " + boundsKey(n) }

// boundsConfig has a key for each caller; the last one is the honest one.
func boundsConfig() string {
	var b strings.Builder
	b.WriteString("front_door:\n  keys:\n")
	for n := range boundsCallers + 1 {
		sum := sha256.Sum256([]byte(boundsKey(n)))
		fmt.Fprintf(&b, "    - {name: caller-%d, hash: 'sha256:%s'}\n", n, hex.EncodeToString(sum[:]))
	}
	return b.String()
}

func TestHeldRefusedAndWaitingCallsAreBounded(t *testing.T) {
	servers := serversFile(t, map[string]entry{"pay": risky(2, scripted(mcptest.Echo)), "calm": scripted(mcptest.Echo)})
	t.Run("one process", func(t *testing.T) {
		data := t.TempDir()
		open := func() *overloadedFleet {
			d := startUp(t, setup{servers: servers, data: data, config: boundsConfig(), env: []string{quickStop}})
			return &overloadedFleet{door: d, t: t, size: bounds(), data: []string{data}, all: map[string]*process{"up": d.process}, began: time.Now()}
		}
		overrun(t, open)
	})
	if !bounds().timed {
		return
	}
	t.Run("three processes", func(t *testing.T) {
		data := t.TempDir()
		n := startNATS(t, data)
		w := startWorker(t, setup{nats: n.url, servers: servers})
		open := func() *overloadedFleet {
			d := startFrontDoor(t, setup{nats: n.url, config: boundsConfig(), env: []string{quickStop}})
			return &overloadedFleet{door: d, t: t, size: bounds(), data: []string{data}, all: map[string]*process{"front door": d.process, "nats-server": n.process, "worker": w.process}, began: time.Now()}
		}
		overrun(t, open)
	})
}

func overrun(t *testing.T, open func() *overloadedFleet) {
	c := open()
	c.ready()
	quiet := c.honestLatency("before")
	empty := c.disk()

	ids, accepted := c.holdAll()
	c.look("with held calls")
	c.sendBadLines()
	c.look("after bad lines")
	close := c.wait(ids[0])
	c.look("with long polls and unread streams")
	loud := c.honestLatency("meanwhile")
	stored := c.disk() - empty
	c.t.Logf("%d bytes of arguments were accepted, %d are on the disk; p99 was %s and is %s", accepted, stored, quiet, loud)
	// Refused calls and the journals of honest calls take space too.
	if limit := 3*accepted + 64<<20; stored > limit {
		t.Errorf("%d bytes are on the disk for %d that were accepted", stored, accepted)
	}
	if c.size.timed && loud > 2*quiet {
		t.Errorf("p99 of honest calls went from %s to %s", quiet, loud)
	}
	close()

	c.stop(t)
	began := time.Now()
	c = open()
	restarted := time.Since(began)
	c.ready()
	c.t.Logf("the restart took %s", restarted)
	if c.size.timed && restarted > 5*time.Second {
		t.Errorf("the restart took %s", restarted)
	}
	c.look("after a restart")
	c.cancelAll(ids)
	c.eventually(t, time.Minute, "giving the disk back", func() error {
		if left := c.disk() - empty; left > accepted/4+32<<20 {
			return fmt.Errorf("%d bytes of %d are left", left, accepted)
		}
		return nil
	})
	c.t.Logf("%d bytes are left on the disk when all calls were taken back", c.disk()-empty)
	if c.size.settle > 0 { // for JetStream's caches, and for the runtime to release memory
		<-time.After(c.size.settle)
	}
	c.look("at rest")
	c.stop(t)
}

func (c *overloadedFleet) ready() {
	c.t.Helper()
	c.eventually(c.t, startWithin, "having its servers", func() error {
		for _, server := range []string{"pay", "calm"} {
			a, err := c.try("GET", "/servers/"+server+"/tools", "", bearer(boundsCallers))
			if err == nil && a.status != http.StatusOK {
				err = fmt.Errorf("%d %s", a.status, a.body)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// honestLatency returns the 99th percentile of honest calls.
func (c *overloadedFleet) honestLatency(when string) time.Duration {
	c.t.Helper()
	var mu sync.Mutex
	took := make([]time.Duration, 0, c.size.calls)
	runCalls(4, c.size.calls, func(n int) error {
		began := time.Now()
		a, err := c.try("POST", toolPath("calm", "echo"), `{"text":"honest"}`, bearer(boundsCallers))
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("%d %s", a.status, a.body)
		}
		mu.Lock()
		took = append(took, time.Since(began))
		mu.Unlock()
		return err
	}).none(c.t, "honest calls "+when)
	slices.Sort(took)
	return took[len(took)*99/100]
}

// holdAll offers all calls to be held and returns the IDs of those that were held, with
// their callers, and the bytes of their arguments.
func (c *overloadedFleet) holdAll() (ids []heldBy, accepted int64) {
	c.t.Helper()
	argument := make([]byte, c.size.heldBytes*3/4)
	for i := range argument {
		argument[i] = byte(rand.Uint32())
	}
	body := fmt.Sprintf(`{"text":"%s"}`, hex.EncodeToString(argument)[:c.size.heldBytes-11])
	var mu sync.Mutex
	var refused atomic.Int64
	runCalls(boundsCallers, c.size.held, func(n int) error {
		a, err := c.try("POST", toolPath("pay", "echo"), body, bearer(n%boundsCallers))
		if err != nil {
			return err
		}
		switch a.status {
		case http.StatusAccepted:
			var h held
			if err := json.Unmarshal(a.body, &h); err != nil {
				return err
			}
			mu.Lock()
			ids, accepted = append(ids, heldBy{h.CallID, n % boundsCallers}), accepted+int64(len(body))
			mu.Unlock()
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			if refused.Add(1); a.header.Get("Retry-After") == "" {
				return fmt.Errorf("a refusal does not say when to come back: %s", a.body)
			}
		default:
			return fmt.Errorf("%d %s", a.status, a.body)
		}
		return nil
	}).none(c.t, "calls to be held")
	c.t.Logf("%d calls are held, %d were refused", len(ids), refused.Load())
	if len(ids) == 0 {
		c.t.Fatal("no call is held")
	}
	return ids, accepted
}

// heldBy is a held call and its caller.
type heldBy struct {
	id     string
	caller int
}

func (c *overloadedFleet) cancelAll(ids []heldBy) {
	c.t.Helper()
	runCalls(4, len(ids), func(n int) error {
		h := ids[n-1]
		a, err := c.try("POST", "/calls/"+h.id+"/cancel", "", bearer(h.caller))
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("%d %s", a.status, a.body)
		}
		return err
	}).none(c.t, "canceling")
}

func (c *overloadedFleet) sendBadLines() {
	c.t.Helper()
	body := strings.Repeat("x\n", c.size.badBytes/2)
	a, err := c.try("POST", "/batches", body, bearer(0), "Content-Type: application/x-ndjson")
	if err == nil && a.status != http.StatusBadRequest { // closing the connection during the body is a valid response too
		c.t.Errorf("a body of bad lines is answered with %d %.300s", a.status, a.body)
	}
}

var goroutinesNow = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

// wait opens the long polls and the unread streams, and returns when the
// front door has accepted all of them. close closes them.
func (c *overloadedFleet) wait(call heldBy) (close func()) {
	c.t.Helper()
	var mu sync.Mutex
	var open []net.Conn
	address := strings.TrimPrefix(c.url, "http://")
	runCalls(32, c.size.polls+c.size.streams, func(n int) error {
		conn, err := net.DialTimeout("tcp", address, answerWithin)
		if err != nil {
			return err
		}
		mu.Lock()
		open = append(open, conn)
		mu.Unlock()
		path := "/events"
		if n <= c.size.polls {
			path = "/calls/" + call.id + "?wait=60"
		}
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", path, address, bearer(call.caller))
		return err
	}).none(c.t, "long polls and streams")
	waiting := min(c.size.polls+c.size.streams, waits.Each)
	c.eventually(c.t, time.Minute, "having all of them", func() error {
		// net/http uses two goroutines for a waiting request: the handler and a background reader.
		if n := c.goroutines(); n < 2*waiting {
			return fmt.Errorf("there are %d goroutines", n)
		}
		return nil
	})
	c.countRefused(open, c.size.polls+c.size.streams-waiting)
	return func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}
}

// countRefused checks that this number of requests is refused with Retry-After. The others
// are streams or have no response yet.
func (c *overloadedFleet) countRefused(open []net.Conn, want int) {
	c.t.Helper()
	refused, untold := 0, 0
	c.eventually(c.t, time.Minute, "being told which of the requests are refused", func() error {
		open = slices.DeleteFunc(slices.Clone(open), func(conn net.Conn) bool {
			_ = conn.SetReadDeadline(time.Now().Add(100 * time.Microsecond))
			head := make([]byte, 2048)
			n, _ := conn.Read(head)
			if bytes.HasPrefix(head[:n], []byte("HTTP/1.1 429")) {
				if refused++; !bytes.Contains(head[:n], []byte("Retry-After: 1\r\n")) {
					untold++
				}
			}
			return n > 0
		})
		if refused != want {
			return fmt.Errorf("%d of %d are refused", refused, want)
		}
		return nil
	})
	if untold > 0 {
		c.t.Errorf("%d requests were not told when to come again", untold)
	}
}

func (c *overloadedFleet) goroutines() int {
	c.t.Helper()
	found := goroutinesNow.FindSubmatch(c.ask(c.t, "GET", "/metrics", "", bearer(boundsCallers)).body)
	if found == nil {
		c.t.Fatal("/metrics has no go_goroutines")
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

// mostMemory limits the resident memory of a process.
const mostMemory = 512 << 20

// look logs the current and the peak resident memory of the processes.
func (c *overloadedFleet) look(when string) {
	c.t.Helper()
	c.t.Logf("%s, after %s", when, time.Since(c.began).Round(time.Millisecond))
	for name, p := range c.all {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid()))
		if err != nil {
			c.t.Fatal(err)
		}
		now, most := kilobytes(text, "VmRSS"), kilobytes(text, "VmHWM")
		c.t.Logf("%s: %s has %d MiB resident, and had %d MiB; %d MiB on the disk", when, name, now>>20, most>>20, c.disk()>>20)
		if most > mostMemory {
			c.t.Errorf("%s: %s had %d MiB resident", when, name, most>>20)
		}
	}
}

func kilobytes(status []byte, name string) int64 {
	_, after, _ := bytes.Cut(status, []byte(name+":"))
	line, _, _ := bytes.Cut(after, []byte("kB"))
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	return n << 10
}

// disk returns the disk usage of the data.
func (c *overloadedFleet) disk() (bytes int64) {
	for _, dir := range c.data {
		_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return nil // the file may have been removed in the meantime
			}
			if info, err := e.Info(); err == nil {
				bytes += info.Size()
			}
			return nil
		})
	}
	return bytes
}
