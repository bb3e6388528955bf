//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const patience = 20 * time.Second

// fetch gets an http URL through the proxy that the environment names, and returns
// the status and the body.
func fetch(args map[string]string) string {
	proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
	if err != nil || proxy.Host == "" {
		return fmt.Sprintf("no proxy: %v", err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy)}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: patience}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, args["url"], nil)
	if err != nil {
		return err.Error()
	}
	answer, err := client.Do(request)
	if err != nil {
		return "failed: " + err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return fmt.Sprintf("%d %s %v", answer.StatusCode, body, err)
}

// connect asks the proxy for a connection to an address, sends the given data through
// it, and returns the status line and the body.
func connect(args map[string]string) string {
	proxy := strings.TrimPrefix(os.Getenv("HTTPS_PROXY"), "http://")
	conn, err := net.DialTimeout("tcp", proxy, patience)
	if err != nil {
		return "failed: " + err.Error()
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "failed: " + err.Error()
	}
	fmt.Fprintf(conn, "CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", args["address"])
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return "failed: " + err.Error()
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return answer.Status
	}
	if _, err := io.WriteString(conn, args["send"]); err != nil {
		return "failed: " + err.Error()
	}
	line, err := in.ReadString('\n')
	return fmt.Sprintf("%s %s %v", answer.Status, strings.TrimSpace(line), err)
}

// resolve resolves a name in all possible ways.
func resolve(args map[string]string) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var found []string
	for _, server := range []string{"", "127.0.0.11:53", "127.0.0.53:53", args["address"]} {
		resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if server != "" {
				address = server
			}
			d := net.Dialer{Timeout: time.Second}
			return d.DialContext(ctx, network, address)
		}}
		if list, err := resolver.LookupHost(ctx, args["name"]); err == nil {
			found = append(found, list...)
		}
	}
	if len(found) == 0 {
		return "blocked: nobody knows it"
	}
	return "through: " + strings.Join(found, ", ")
}
