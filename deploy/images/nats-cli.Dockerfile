# Builds the nats command if images can be pulled; deploy/compose.yaml uses it for
# backup and restore. build.sh reads the version from this file.
FROM golang:1.26 AS build
RUN mkdir -p /root-fs/tmp && chmod 1777 /root-fs/tmp && GOBIN=/root-fs CGO_ENABLED=0 go install -trimpath -ldflags='-s -w' github.com/nats-io/natscli/nats@v0.5.1

FROM scratch
COPY --from=build /root-fs /
USER 65532:65532
ENV HOME=/tmp
ENTRYPOINT ["/nats"]
