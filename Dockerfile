# auxhash serve in a container: docker build -t auxhash .
#
#   docker run --read-only --tmpfs /tmp -p 8000:8000 -v codes:/data \
#     -v "$PWD/token.txt:/run/secrets/token:ro" auxhash
#
# Stores and models lie in the volume. User 10001 must be able to read the token's file. Arguments
# after the name of the image are those of `auxhash serve`, in place of the store below:
#
#   ... auxhash --model model.safetensors --store sqlite:///items.db
FROM python:3.13-slim
COPY . /src
RUN python -m venv /opt/auxhash \
    && /opt/auxhash/bin/pip install --no-cache-dir '/src[serve,data]' \
    && mkdir -p /data && chown 10001:10001 /data
ENV PATH=/opt/auxhash/bin:$PATH HOME=/data NUMBA_CACHE_DIR=/data/.numba PYTHONDONTWRITEBYTECODE=1
WORKDIR /data
VOLUME /data
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --start-period=30s CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener; build_opener(ProxyHandler({})).open('http://127.0.0.1:8000/readyz')"]
ENTRYPOINT ["auxhash", "serve", "--host", "0.0.0.0", "--token-file", "/run/secrets/token", "--no-open"]
CMD ["--store", "sqlite:///codes.db", "--bits", "64"]
