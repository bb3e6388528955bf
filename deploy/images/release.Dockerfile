# The image of one program of a release: the binary that .goreleaser.yaml built, a user,
# certificates and /tmp. ROLE names the program. The image equals that of deploy/images/Dockerfile.
FROM --platform=$BUILDPLATFORM golang:1.26 AS files
ARG ROLE
RUN mkdir -p /root-fs/etc/ssl/certs /root-fs/tmp /owned && \
    if [ "$ROLE" = callyard ]; then mkdir /owned/data; fi && \
    chmod 1777 /root-fs/tmp && \
    printf 'root:x:0:0::/:\ncallyard:x:65532:65532::/tmp:\n' >/root-fs/etc/passwd && \
    cp /etc/ssl/certs/ca-certificates.crt /root-fs/etc/ssl/certs/ && \
    ln -s /$ROLE /root-fs/program

FROM scratch
ARG TARGETPLATFORM
COPY --from=files /root-fs /
# A new volume at /data takes the owner of this folder, so that "up --data /data" can write there.
COPY --from=files --chown=65532:65532 /owned /
COPY $TARGETPLATFORM/ /
USER 65532:65532
ENV HOME=/tmp
ENTRYPOINT ["/program"]
