package porttest

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("PORTTEST_SAY") != "" {
		ports, err := Free(row - 1)
		if err != nil {
			panic(err)
		}
		for _, p := range ports {
			_, _ = os.Stdout.WriteString(strconv.Itoa(p) + "\n")
		}
		_, _ = os.Stdin.Read(make([]byte, 1)) // runs until its stdin is closed
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestAPortIsGivenAgainOnlyAfterAllOthers(t *testing.T) {
	given := map[int]bool{}
	for range (row - 1) / 2 {
		for _, p := range Ports(t, 2) {
			if given[p] || p <= least || p >= most {
				t.Errorf("port %d is given, given before: %t", p, given[p])
			}
			given[p] = true
		}
	}
}

func TestAPortThatIsListenedOnIsNotGiven(t *testing.T) {
	address := Address(t)
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range row - 2 {
		if got := Address(t); got == address {
			t.Fatalf("%s is given while somebody listens", got)
		}
	}
	if _, err := Free(row); err == nil {
		t.Error("more ports are given than there are")
	}
}

func TestTwoProcessesHaveDifferentPorts(t *testing.T) {
	mine := map[string]bool{}
	for _, p := range Ports(t, row-1) {
		mine[strconv.Itoa(p)] = true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	{
		other := exec.Command(self)
		other.Env = append(os.Environ(), "PORTTEST_SAY=1")
		out, err := other.Output() // its stdin is empty, so it exits at once
		if err != nil {
			t.Fatal(err)
		}
		ports := strings.Fields(string(out))
		if len(ports) != row-1 {
			t.Fatalf("it has %d ports", len(ports))
		}
		for _, p := range ports {
			if mine[p] {
				t.Errorf("port %s is given to two", p)
			}
		}
	}
}
