package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A script is a small hand-written MCP server with one fault that no SDK would have. Its name
// selects its behavior at the start, and the name of the tool its behavior in a call.

type script struct {
	mode  string
	mu    sync.Mutex
	out   *bufio.Writer
	tools []string
	held  []json.RawMessage // ids of calls that are never answered
}

// startsVariable is the environment variable with the file in which a "starter" records its starts.
const startsVariable = "SESSION_TEST_STARTS"

// slowStart is how long a slow server takes before it reads anything.
const slowStart = 500 * time.Millisecond

// fast answers calls with minimal work, to measure the client side.
func (s *script) fast(in *bufio.Reader) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			os.Exit(0)
		}
		if !bytes.Contains(line, []byte(`"tools/call"`)) {
			var m scriptMessage
			if json.Unmarshal(line, &m) != nil {
				os.Exit(9)
			}
			s.handle(&m, line)
			continue
		}
		rest := line[bytes.Index(line, []byte(`"id":`))+5:]
		id := rest[:bytes.IndexByte(rest, ',')]
		s.out.WriteString(`{"result":{"content":[{"type":"text","text":"`)
		s.out.Write(rest[len(rest)-170 : len(rest)-10])
		s.out.WriteString(`"}]},"jsonrpc":"2.0","id":`)
		s.out.Write(id)
		s.out.WriteString("}\n")
		if in.Buffered() == 0 {
			s.out.Flush()
		}
	}
}

type scriptMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Error  json.RawMessage `json:"error"`
	Result json.RawMessage `json:"result"`
}

func runScript(mode string) {
	s := &script{mode: mode, out: bufio.NewWriterSize(os.Stdout, 1<<20), tools: []string{"echo", "twin", "twin"}}
	switch mode {
	case "exits":
		fmt.Fprintln(os.Stderr, "no licence found")
		os.Exit(3)
	case "garbage":
		for {
			fmt.Println("[debug] not a protocol line {")
		}
	case "deaf":
		forever()
	case "slow":
		<-time.After(slowStart)
	case "starter":
		if f, err := os.OpenFile(os.Getenv(startsVariable), os.O_APPEND|os.O_WRONLY, 0); err == nil {
			_, _ = f.WriteString("started\n")
			_ = f.Close()
		}
		<-time.After(6 * slowStart)
	case "talks":
		for i := range 900 {
			fmt.Println("starting up", i)
		}
		fmt.Println(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`)
		fmt.Println(`["not an object"]`)
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	if mode == "fast" {
		s.fast(in)
	}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if s.mode == "stubborn" {
				forever()
			}
			return
		}
		var m scriptMessage
		if err := json.Unmarshal(line, &m); err != nil {
			fmt.Fprintf(os.Stderr, "bad line: %v\n", err)
			os.Exit(9)
		}
		s.handle(&m, line)
	}
}

func (s *script) print(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
	s.out.Flush()
}

func (s *script) result(id json.RawMessage, result string) {
	s.print(`{"result":%s,"jsonrpc":"2.0","id":%s}`, result, id)
}

func (s *script) handle(m *scriptMessage, line []byte) {
	if s.mode == "floats" && len(m.ID) > 0 { // it holds numbers as floating-point numbers
		m.ID = append(slices.Clip(m.ID), ".0"...)
	}
	switch {
	case s.mode == "silent":
		return
	case m.Method == "":
		s.print(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
		s.answered(m)
	case m.Method == "server/discover" && (s.mode == "modern" || s.mode == "late"):
		if s.mode == "late" {
			time.Sleep(500 * time.Millisecond) // longer than the first probe; other messages wait in the meantime
		}
		s.result(m.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"modern","version":"7"}}}`)
	case m.Method == "server/discover":
		switch s.mode {
		case "ignores":
		case "poisoned":
			s.mode = "silent" // hangs on unknown methods
		default:
			s.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
		}
	case m.Method == "initialize":
		switch s.mode {
		case "half":
			return
		case "unleveled": // it does not answer logging/setLevel
			s.result(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"script","version":"1"}}`)
			return
		case "wordy":
			s.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no licence %s"}}`, m.ID, strings.Repeat("é", 1<<20))
			return
		case "named":
			name := strings.Repeat("é", 1<<20)
			s.result(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"`+name+`","version":"`+name+`"}}`)
			return
		}
		s.result(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"script","title":"A script","version":"1.2"}}`)
	case m.Method == "tools/list" && s.mode == "listless":
		s.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"the database is down"}}`, m.ID)
	case m.Method == "tools/list" && s.mode == "latin":
		s.result(m.ID, "{\"tools\":[{\"name\":\"latin\",\"description\":\"caf\xe9\",\"inputSchema\":{\"type\":\"object\"}}]}")
	case m.Method == "tools/list":
		if s.mode == "eager" { // reports a change once, as some servers do when they have started
			s.mode = "legacy"
			s.print(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		s.list(m)
	case m.Method == "tools/call":
		s.call(m, line)
	case m.Method == "ping":
		if s.mode != "pingless" {
			s.result(m.ID, `{}`)
		}
	case m.Method == "notifications/cancelled":
		s.print(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
		fmt.Fprintf(os.Stderr, "cancelled %s\n", m.Params)
	}
}

// list returns one tool per page.
func (s *script) list(m *scriptMessage) {
	var params struct{ Cursor string }
	_ = json.Unmarshal(m.Params, &params)
	page := 0
	_, _ = fmt.Sscanf(params.Cursor, "page%d", &page)
	next := ""
	if page+1 < len(s.tools) {
		next = fmt.Sprintf(`,"nextCursor":"page%d"`, page+1)
	}
	s.result(m.ID, fmt.Sprintf(`{"tools":[{"name":%q,  "inputSchema":{"type":"object"},"x-page":%d,"big":9007199254740993}]%s}`, s.tools[page], page, next))
}

func (s *script) answered(m *scriptMessage) {
	// An answer to a request of ours: return it as the result of the call that asked.
	for _, id := range s.held {
		s.result(id, fmt.Sprintf(`{"reply":%s,"error":%s}`, orNull(m.Result), orNull(m.Error)))
	}
	s.held = nil
}

func orNull(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "null"
	}
	return string(raw)
}

func (s *script) call(m *scriptMessage, line []byte) {
	var params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		os.Exit(8)
	}
	var number struct{ N int }
	_ = json.Unmarshal(params.Arguments, &number)
	switch params.Name {
	case "echo": // the arguments unchanged, and the whole line
		s.result(m.ID, fmt.Sprintf(`{"content":[{"type":"text","text":"ok"}],"args":%s}`, params.Arguments))
	case "line":
		quoted, _ := json.Marshal(strings.TrimRight(string(line), "\n"))
		s.result(m.ID, fmt.Sprintf(`{"line":%s}`, quoted))
	case "odd":
		s.result(m.ID, `{ "z":1.0,"content":[{"type":"hologram","n":9007199254740993}] , "_meta":{"x":1e2},"a":"\u00e9" }`)
	case "toolerror":
		s.result(m.ID, `{"content":[],"isError": true}`)
	case "rpcerror":
		s.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such thing","data":{"n":9007199254740993}}}`, m.ID)
	case "latin": // progress and an error in Latin-1
		s.print("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"message\":\"caf\xe9\"}}", params.Meta.ProgressToken)
		s.print("{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32602,\"message\":\"caf\xe9\",\"data\":\"caf\xe9\"}}", m.ID)
	case "input":
		s.result(m.ID, `{"resultType":"input_required","inputRequests":{}}`)
	case "task":
		s.result(m.ID, `{"resultType":"task","taskId":"1"}`)
	case "array":
		s.result(m.ID, `[]`)
	case "brokenjson":
		s.print(`{"id":%s,"result":{"a":}}`, m.ID)
	case "brokenend":
		s.print(`{"result":{"a":},"id":%s}`, m.ID)
	case "busy": // reads nothing meanwhile, like a server with one thread
		<-time.After(time.Duration(number.N) * time.Millisecond)
		s.result(m.ID, `{"busy":false}`)
	case "loud": // logs on stdout the request that it received, and its answer
		s.print(`received: {"method":"tools/call","params":{},"jsonrpc":"2.0","id":%s}`, m.ID)
		s.print(`sending: {"result":{},"jsonrpc":"2.0","id":%s}`, m.ID)
		s.result(m.ID, `{"loud":true}`)
	case "texterror":
		s.print(`{"jsonrpc":"2.0","id":%s,"error":"the disk is full"}`, m.ID)
	case "hang":
	case "sleep":
		go func() {
			<-time.After(time.Duration(number.N) * time.Millisecond)
			s.result(m.ID, `{"slept":true}`)
		}()
	case "crash":
		os.Exit(7)
	case "halfanswer":
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"ty`, m.ID)
		os.Exit(7)
	case "noend":
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID)
		os.Exit(7)
	case "pid":
		s.result(m.ID, fmt.Sprintf(`{"pid":%d}`, os.Getpid()))
	case "huge":
		s.print(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`, m.ID, strings.Repeat("x", number.N))
	case "hugelast":
		s.print(`{"result":{"content":[{"type":"text","text":"%s"}]},"jsonrpc":"2.0","id":%s}`, strings.Repeat("x", number.N), m.ID)
	case "nameless":
		s.print(`{"result":{"content":[{"type":"text","text":"%s"}]}}`, strings.Repeat("x", 10<<20))
	case "endless":
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
		block := strings.Repeat("y", 1<<20)
		for {
			if _, err := os.Stdout.WriteString(block); err != nil {
				os.Exit(1)
			}
		}
	case "flood":
		for range number.N {
			s.print("this is no protocol line")
		}
	case "progress":
		for i := range number.N {
			s.print(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, params.Meta.ProgressToken, i)
		}
		s.result(m.ID, `{}`)
	case "asks": // a request of the server during a call
		s.held = append(s.held, m.ID)
		s.print(`{"jsonrpc":"2.0","id":"q1","method":"%s","params":{}}`, map[int]string{0: "ping", 1: "elicitation/create"}[number.N])
	case "change":
		s.tools = append(s.tools, fmt.Sprintf("new%d", len(s.tools)))
		s.print(`{"jsonrpc":"2.0","method":"notifications\/tools\/list_changed"}`)
		s.result(m.ID, `{}`)
	case "stopreading": // without an answer
		forever()
	case "grandchild": // that keeps stdout open and outlives us
		exe, _ := os.Executable()
		c := exec.Command(exe)
		c.Env = append(os.Environ(), scriptVariable+"=deaf")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			os.Exit(6)
		}
		s.result(m.ID, fmt.Sprintf(`{"pid":%d}`, c.Process.Pid))
	default:
		s.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unknown tool"}}`, m.ID)
	}
}

// forever waits for a signal that is never sent. With an empty select, the runtime would report a
// deadlock if there is no other goroutine.
func forever() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR1)
	<-never
}
