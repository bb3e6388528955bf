// Command scripted is a scripted MCP server on stdin and stdout, for tests that
// need a server as a program of its own: in a container image, or started by a
// worker process. The first argument names the mode, one of the constants of
// package mcptest.
package main

import "github.com/callyard/callyard/internal/mcptest"

func main() { mcptest.Main() }
