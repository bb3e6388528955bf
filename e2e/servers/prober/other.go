//go:build !linux

package main

func main() {} // sandboxes require Linux
