# flexid as an image: one static binary on nothing.
#
#   docker build -t flexid .
#   docker run --read-only --cap-drop ALL --security-opt no-new-privileges -v flexid:/var/lib/flexid --env-file flexid.env \
#     -v ./flexi-password:/run/secrets/flexi-password:ro -p 127.0.0.1:8480:8480 flexid
#
# with FLEXID_FLEXI_PASSWORD_FILE=/run/secrets/flexi-password in flexid.env, a file that uid 65532 can read; for webhooks
# -p 8481:8481 and FLEXID_WEBHOOK_ADDR=0.0.0.0:8481. --stop-timeout must be longer than FLEXID_DRAIN_TIMEOUT (30s).

FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# .git is in the context on purpose: the binary then names its revision.
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/flexid ./cmd/flexid
RUN mkdir -p /out/etc/ssl/certs /state \
 && cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ \
 && echo 'flexid:x:65532:65532::/var/lib/flexid:/flexid' > /out/etc/passwd \
 && echo 'flexid:x:65532:' > /out/etc/group

FROM scratch
COPY --from=build /out /
# Its owner is what a new volume gets.
COPY --from=build --chown=65532:65532 --chmod=700 /state /var/lib/flexid
USER 65532:65532
# No zone files: the binary carries the time zones (config imports time/tzdata).
# Temporary files of push go to the volume: nothing else can be written.
ENV FLEXID_STATE_DIR=/var/lib/flexid \
    FLEXID_HTTP_ADDR=0.0.0.0:8480 \
    TMPDIR=/var/lib/flexid
VOLUME /var/lib/flexid
EXPOSE 8480
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=6s --start-period=30s --retries=3 CMD ["/flexid", "healthcheck"]
ENTRYPOINT ["/flexid"]
CMD ["serve"]
