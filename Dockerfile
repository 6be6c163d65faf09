# drift on its own: docker build --tag drift . && docker run --rm --volume "$PWD:/work" drift fit
FROM rust:1.95-slim-bookworm AS build
WORKDIR /drift
COPY . .
RUN cargo build --locked --release --bin drift && strip target/release/drift

FROM debian:bookworm-slim
COPY --from=build /drift/target/release/drift /usr/local/bin/drift
COPY --from=build /drift/LICENSE-MIT /drift/LICENSE-APACHE /usr/share/doc/drift/
WORKDIR /work
ENTRYPOINT ["drift"]
CMD ["--help"]
